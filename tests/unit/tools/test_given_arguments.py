"""What models really send as arguments: read as it can only be meant, or told with its place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from reprise.tools.catalog import TOOLS
from reprise.tools.given_arguments import parsed, problem_of, read_as_meant
from resources.memory_sandbox import MemorySandbox
from tests.sandbox_desk import Desk

EDIT = {"oldText": "b", "newText": "c"}


@pytest.fixture
def desk() -> Desk:
    return Desk(MemorySandbox({"a.ts": b"a\nb\n"}))


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("EditSandboxFile", {"path": "a.ts", **EDIT, "replaceAll": "true"}),
        ("EditSandboxFile", {"path": "a.ts", **EDIT, "replaceAll": "False"}),
        ("EditSandboxFile", {"path": "a.ts", **EDIT, "replaceAll": None, "expectHash": None}),
        ("EditSandboxFile", {"path": "a.ts", "old_text": "b", "new_text": "c"}),
        ("EditSandboxFile", {"Path": "a.ts", "oldtext": "b", "NewText": "c"}),
        ("EditSandboxFile", json.dumps({"path": "a.ts", **EDIT})),
        ("ApplySandboxFileEdits", {"path": "a.ts", "edits": json.dumps([EDIT])}),
        ("ApplySandboxFileEdits", {"path": "a.ts", "edits": json.dumps(EDIT)}),
        ("ApplySandboxFileEdits", {"path": "a.ts", "edits": EDIT}),
        ("ApplySandboxFileEdits", {"path": "a.ts", "edits": [json.dumps(EDIT)]}),
        ("ApplySandboxFileEdits", {"path": "a.ts", "edits": [{"old_text": "b", "new_text": "c"}]}),
    ],
)
def test_what_can_only_be_meant_one_way_is_taken(
    desk: Desk, tool: str, arguments: JsonValue
) -> None:
    answer = desk.raw(tool, json.dumps(arguments))
    assert answer["ok"] is True
    assert desk.data("a.ts") == b"a\nc\n"


def test_line_ends_and_tabs_may_stand_raw_in_the_json(desk: Desk) -> None:
    raw = '{"path": "a.ts", "oldText": "a\nb", "newText": "x\ty"}'
    assert desk.raw("EditSandboxFile", raw)["ok"] is True
    assert desk.data("a.ts") == b"x\ty\n"


def test_numbers_written_as_texts_are_numbers(desk: Desk) -> None:
    answer = desk.call("ReadSandboxFileLines", path="a.ts", startLine="2", lineCount=" 1 ")
    assert answer["text"] == "2| b"


@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [
        (
            "EditSandboxFile",
            {"path": "a.ts", **EDIT, "replaceAll": "yes"},
            "'replaceAll' is of type string, not boolean",
        ),
        (
            "EditSandboxFile",
            {"path": "a.ts", "oldText": "b", "newText": None},
            "'newText' is of type null, not string",
        ),
        (
            "ReadSandboxFileLines",
            {"path": "a.ts", "startLine": "2.5"},
            "'startLine' is of type string, not integer",
        ),
        (
            "EditSandboxFile",
            {"path": "a.ts", "old_string": "b", "new_string": "c"},
            "there is no argument 'old_string', 'new_string'; there are: path, oldText, newText, "
            "replaceAll, expectHash",
        ),
        (
            "ApplySandboxFileEdits",
            {"path": "a.ts", "edits": [EDIT, {"oldText": "b"}]},
            "in 'edits[1]': 'newText' is a required property",
        ),
        (
            "ApplySandboxFileEdits",
            {"path": "a.ts", "edits": [{"oldText": "b", "newText": 5}]},
            "'edits[0].newText' is of type number, not string",
        ),
        (
            "EditSandboxFile",
            {"path": "a.ts", "oldText": "b", "old_text": "a", "newText": "c"},
            "there is no argument 'old_text'; there are: path, oldText, newText, replaceAll, "
            "expectHash",
        ),
        (
            "WriteSandboxFile",
            {"path": "a.json", "content": {"a": 1}},
            "'content' is of type object, not string",
        ),
    ],
)
def test_what_stays_unfit_is_told_with_its_place(
    desk: Desk, tool: str, arguments: dict[str, JsonValue], error: str
) -> None:
    answer = desk.raw(tool, json.dumps(arguments))
    assert answer["error"] == f"the arguments do not fit: {error}; see the tool's schema"
    assert desk.data("a.ts") == b"a\nb\n"


@pytest.mark.parametrize("text", ["true", "null", "3", '["a"]', '{"oldText": "b"}', " x "])
def test_a_text_is_never_read_as_anything_else(desk: Desk, text: str) -> None:
    assert desk.call("WriteSandboxFile", path="b.json", content=text)["ok"] is True
    assert desk.data("b.json") == text.encode()


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["path", "edits", "old_text", "oldText", "newText", "startLine"])
            | st.text(max_size=5),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(_values, st.sampled_from(sorted(TOOLS)))
def test_what_fits_is_left_as_it_is_and_reading_it_twice_changes_nothing(
    value: JsonValue, name: str
) -> None:
    schema = TOOLS[name].schema.parameters
    meant = read_as_meant(value, schema)
    assert read_as_meant(meant, schema) == meant
    if problem_of(value, schema) is None:
        assert meant == value


def test_a_call_with_very_many_names_is_answered_at_once(desk: Desk) -> None:
    answer = desk.call("EditSandboxFile", **{f"k{at}": at for at in range(60_000)})
    assert answer["error"].startswith("the arguments do not fit: there is no argument 'k0', 'k1'")
    assert len(answer["error"]) < 600


def test_what_is_no_json_is_no_value() -> None:
    with pytest.raises(ValueError, match="Expecting value"):
        parsed("```json\n{}\n```")
