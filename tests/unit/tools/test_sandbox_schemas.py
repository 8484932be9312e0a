"""The schemas of the sandbox's tools, in the forms in which endpoints are sent them."""

import json

import jsonschema
import pytest
from pydantic import JsonValue

from reprise.agents import anthropic_requests, chat_requests
from reprise.agents.anthropic_schema import native_schema
from reprise.agents.cache_marks import CacheMarks
from reprise.agents.json_tools import json_request
from reprise.model.agent import AgentDefinition
from reprise.model.conversation import Message, ModelRequest
from reprise.tools.access import ToolAccess
from reprise.tools.toolbox import Toolbox
from tests.sandbox_desk import GROUPS

SCHEMAS = Toolbox(GROUPS, ToolAccess()).schemas
REQUEST = ModelRequest(
    agent=AgentDefinition(id="a", agent_type="a", system_prompt="You.", tool_groups=GROUPS),
    system_prompt="You.",
    messages=(Message(role="user", content="Go."),),
    tools=SCHEMAS,
)


def words_of(value: JsonValue) -> set[str]:
    """Return every key of a schema."""
    if isinstance(value, list):
        return {word for item in value for word in words_of(item)}
    if not isinstance(value, dict):
        return set()
    return set(value) | {word for item in value.values() for word in words_of(item)}


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
def test_a_schema_is_plain_and_describes_every_argument(schema: object) -> None:
    parameters = getattr(schema, "parameters")  # noqa: B009 - The parameter's type is any schema's.
    assert words_of(parameters).isdisjoint({"$ref", "$defs", "title", "anyOf", "oneOf", "allOf"})
    properties = parameters["properties"]
    assert [name for name, each in properties.items() if not each.get("description")] == []
    assert parameters["additionalProperties"] is False


def test_chat_completions_are_sent_the_schemas_as_they_are() -> None:
    body = chat_requests.request_bytes(
        REQUEST, model="m", limit_name="max_tokens", with_schema=True, streamed=False
    )
    sent = {tool["function"]["name"]: tool["function"] for tool in json.loads(body)["tools"]}
    assert {name: each["parameters"] for name, each in sent.items()} == {
        schema.name: schema.parameters for schema in SCHEMAS
    }


def test_messages_are_sent_the_schemas_as_they_are() -> None:
    body = anthropic_requests.request_bytes(
        REQUEST, model="m", with_schema=True, marks=CacheMarks(), streamed=False
    )
    sent = {tool["name"]: tool["input_schema"] for tool in json.loads(body)["tools"]}
    assert sent == {schema.name: schema.parameters for schema in SCHEMAS}


def test_an_endpoint_without_tools_can_be_held_to_a_call_of_each() -> None:
    schema = json_request(REQUEST).output_schema
    assert schema is not None
    jsonschema.Draft202012Validator.check_schema(schema)
    call = {"tool": "EditSandboxFile", "arguments": {"path": "a", "oldText": "b", "newText": "c"}}
    assert jsonschema.Draft202012Validator(schema).is_valid(call)
    del call["arguments"]["path"]  # type: ignore[attr-defined]  # A call without a path.
    assert not jsonschema.Draft202012Validator(schema).is_valid(call)
    assert native_schema(schema) is not None
