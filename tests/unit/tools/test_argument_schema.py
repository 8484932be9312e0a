"""Arguments as models give schemas that every endpoint takes."""

from pydantic import Field

from reprise.tools.argument_schema import Arguments, tool_schema


class Hunk(Arguments):
    """One of them."""

    old_text: str
    """What is there."""
    title: str = ""
    """A property may have this name."""


class Hunks(Arguments):
    """For the reader."""

    path: str = Field(max_length=9)
    """Where."""
    first: Hunk | None = None
    """The first one."""
    hunks: tuple[Hunk, ...] = Field(min_length=1)
    """All of them."""


HUNK = {
    "type": "object",
    "additionalProperties": False,
    "required": ["oldText"],
    "properties": {
        "oldText": {"type": "string", "description": "What is there."},
        "title": {
            "type": "string",
            "default": "",
            "description": "A property may have this name.",
        },
    },
    "description": "One of them.",
}


def test_a_schema_is_closed_without_references_and_titles_and_named_in_camel_case() -> None:
    schema = tool_schema("PatchIt", "Patches.", Hunks)
    assert (schema.name, schema.description) == ("PatchIt", "Patches.")
    assert schema.parameters == {
        "type": "object",
        "additionalProperties": False,
        "required": ["path", "hunks"],
        "properties": {
            "path": {"type": "string", "maxLength": 9, "description": "Where."},
            "first": {
                "anyOf": [HUNK, {"type": "null"}],
                "default": None,
                "description": "The first one.",
            },
            "hunks": {
                "type": "array",
                "minItems": 1,
                "items": HUNK,
                "description": "All of them.",
            },
        },
    }
