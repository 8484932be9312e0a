"""Arguments of a tool as a pydantic model, and the JSON Schema that a model is shown of it.

    class Lines(Arguments):
        path: str
        \"\"\"Path in the sandbox.\"\"\"
        start_line: int = 1
        \"\"\"First line, from 1.\"\"\"

The names in JSON are camelCase; the strings under the fields become descriptions. A schema has no
references, which not every endpoint follows, and its objects are closed.

Source: specification E, A2.
"""

from pydantic import ConfigDict, JsonValue
from pydantic.alias_generators import to_camel

from reprise.model.base import Value
from reprise.model.conversation import ToolSchema


class Arguments(Value):
    """The arguments of a tool; one model each."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


def tool_schema(name: str, description: str, arguments: type[Arguments]) -> ToolSchema:
    """Return a tool as a model is shown it.

    Args:
        name: The tool's name.
        description: What it does and when to use it.
        arguments: The model of its arguments; it holds no model that holds itself.
    """
    schema: dict[str, JsonValue] = arguments.model_json_schema(by_alias=True)
    definitions = schema.pop("$defs", {})
    assert isinstance(definitions, dict)
    # The model's docstring is for who reads the code.
    schema.pop("description", None)
    parameters = _inlined(schema, definitions)
    assert isinstance(parameters, dict)
    return ToolSchema(name=name, description=description, parameters=parameters)


def _inlined(value: JsonValue, definitions: dict[str, JsonValue]) -> JsonValue:
    """Return a schema with definitions in place of references, and without titles."""
    if isinstance(value, list):
        return [_inlined(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    reference = value.get("$ref")
    if isinstance(reference, str):
        definition = definitions[reference.rpartition("/")[2]]
        assert isinstance(definition, dict)
        beside = {key: item for key, item in value.items() if key != "$ref"}
        return _inlined({**definition, **beside}, definitions)
    return {
        name: _inlined(item, definitions)
        for name, item in value.items()
        # A property of this name is an object.
        if not (name == "title" and isinstance(item, str))
    }
