"""Re-reading prior outputs: whole, by path, by range."""

import json
from typing import Any

import pytest
from pydantic import JsonValue

from reprise.model.agent import ToolGroup
from reprise.model.conversation import AgentInputs, PriorOutput
from reprise.tools.access import ToolAccess
from reprise.tools.tool import RESULT_CHARS_MAX
from reprise.tools.toolbox import Toolbox
from reprise.tools.workflow_read import PATH_CHARS_MAX

SHOTS: JsonValue = {"shots": [{"id": f"v1.s{n:03d}", "score": n} for n in range(5)], "note": "é"}
LONG = "".join(f"{n:06d}\n" for n in range(20_000))


def prior(order: int, output: JsonValue, label: str = "x") -> PriorOutput:
    return PriorOutput(order=order, label=label, type="Agent", agent_type="writer", output=output)


ACCESS = ToolAccess(
    AgentInputs(prior=(prior(1, SHOTS, "analyze"), prior(3, LONG, "text"), prior(0, "in a room")))
)


def run(tool: str, **arguments: object) -> Any:
    return json.loads(Toolbox([ToolGroup.WORKFLOW_READ], ACCESS).run(tool, json.dumps(arguments)))


def test_the_steps_with_an_output_are_listed() -> None:
    found = run("list_prior_steps")
    assert (found["total"], found["cut"]) == (2, False)
    assert found["steps"][0] == {
        "order": 1,
        "label": "analyze",
        "type": "Agent",
        "agent_type": "writer",
        "chars": len(json.dumps(SHOTS, ensure_ascii=False)),
        "keys": ["shots", "note"],
    }
    assert found["steps"][1]["chars"] == 140_000


def test_an_output_that_fits_is_given_whole() -> None:
    assert run("read_prior_output", order=1) == {
        "ok": True,
        "order": 1,
        "label": "analyze",
        "value": SHOTS,
        "cut": False,
    }


def test_a_path_gives_a_part() -> None:
    found = run("read_prior_output", order=1, path="shots[?score > `2`].id")
    assert found["value"] == ["v1.s003", "v1.s004"]


@pytest.mark.parametrize("count", [999, RESULT_CHARS_MAX])
def test_a_long_output_is_read_in_ranges_to_its_end(count: int) -> None:
    text, offset = "", 0
    while True:
        found = run("read_prior_output", order=3, offset=offset, char_count=count)
        text += found["text"]
        if "next_offset" not in found:
            break
        offset = found["next_offset"]
    assert text == LONG


def test_without_a_range_a_long_output_begins_and_says_how_to_go_on() -> None:
    found = run("read_prior_output", order=3)
    assert (found["offset"], found["total_chars"], found["cut"]) == (0, 140_000, True)
    assert found["next_offset"] == len(found["text"])
    assert len(json.dumps(found["text"])) <= RESULT_CHARS_MAX + 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"order": 2}, "step 2 has no output before this step; those that have one: 1, 3"),
        ({"order": 1, "path": "shots["}, "the path 'shots[' cannot be followed"),
        ({"order": 1, "path": "&shots"}, "the path '&shots' cannot be followed"),
        ({"order": 1, "path": "nothing"}, "leads to nothing in the output of step 1"),
        ({"order": 1, "path": "abs(note)"}, "cannot be followed"),
        ({"order": 1, "path": "[" * 499}, "cannot be followed"),
        ({"order": 1, "offset": 9_999}, "offset 9999 is behind its end"),
    ],
)
def test_what_cannot_be_read_says_why(arguments: dict[str, object], told: str) -> None:
    found = run("read_prior_output", **arguments)
    assert found["ok"] is False
    assert told in found["error"]


MULTIPLYING = (
    "|".join(["[@,@]"] * 30),
    "|".join(["[@,@][]"] * 30),
    "|".join(["{a:@,b:@}"] * 30),
    "|".join(["{a:[@,@],b:[@,@]}"] * 12) + "|a==b",
    "shots[*]." + ".".join(["[@,@]"] * 30),
    "|".join(["map(&[@,@],[@])"] * 20),
    "|".join(["join('',[@,@])"] * 30),
    "to_string([" * 30 + "@" + "])" * 30,
    "[" * 7 + "@" + ",@]|" + "[@,@]|" * 40 + "@",
)


@pytest.mark.parametrize("path", MULTIPLYING)
def test_a_path_that_multiplies_is_not_followed(path: str) -> None:
    found = run("read_prior_output", order=1, path=path)
    assert found["ok"] is False
    assert len(path) <= PATH_CHARS_MAX
    assert "followed" in found["error"]


def test_a_path_that_gives_too_much_ends_soon() -> None:
    rows: JsonValue = ["0123456789" * 100] * 5_000
    words: JsonValue = {"rows": rows, "text": "x" * 1_000_000}
    access = ToolAccess(AgentInputs(prior=(prior(1, words),)))
    box = Toolbox([ToolGroup.WORKFLOW_READ], access)
    for path, why in (
        ("[rows,rows]", "gives more than 4000000 characters"),
        ("join(text, rows)", "takes too much work"),
        ("rows[*].[@,@,@,@,@,@,@,@]", "takes too much work"),
    ):
        found = json.loads(box.run("read_prior_output", json.dumps({"order": 1, "path": path})))
        assert found["ok"] is False
        assert why in found["error"]
        assert "take a part first" in found["error"]


def test_a_path_that_picks_many_fields_is_followed() -> None:
    fields = ", ".join(f"f{n}: id" for n in range(20))
    found = run("read_prior_output", order=1, path=f"shots[?score > `3` && id != 'x'].{{{fields}}}")
    assert found["value"] == [{f"f{n}": "v1.s004" for n in range(20)}]


@pytest.mark.parametrize("path", ["`NaN`", "`1e999`", "to_number('nan')", "[`-1e999`]"])
def test_a_number_that_json_has_not_is_told(path: str) -> None:
    found = run("read_prior_output", order=1, path=path)
    assert found["ok"] is False
    assert "cannot be followed: Out of range float values" in found["error"]
