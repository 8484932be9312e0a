"""The outline of a sandbox file as an agent gets it, and what an edit says of syntax."""

import json

from reprise.tools.toolbox import ANSWER_CHARS_MAX
from tests.sandbox_desk import Desk

ROOT = b"""import {Composition, Still} from "remotion";
import * as cards from "./cards";
import type {Card} from "./cards";

const ID = makeId();
export const Root = () => (
  <>
    <Composition id="TitleCard" component={Title} />
    <Still id={ID} component={Title} />
  </>
);
"""


def test_an_outline_has_imports_exports_declarations_and_compositions(desk: Desk) -> None:
    desk.put("src/Root.tsx", ROOT)
    answer = desk.call("GetSandboxFileOutline", path="src/Root.tsx")
    assert answer == {
        "ok": True,
        "path": "src/Root.tsx",
        "hash": answer["hash"],
        "totalLines": 11,
        "language": "tsx",
        "imports": [
            {"line": 1, "from": "remotion", "names": ["Composition", "Still"]},
            {"line": 2, "from": "./cards", "names": ["* as cards"]},
            {"line": 3, "from": "./cards", "names": ["Card"], "typeOnly": True},
        ],
        "exports": [{"name": "Root", "kind": "const", "line": 6, "startLine": 6, "endLine": 11}],
        "declared": [{"name": "ID", "kind": "const", "line": 5, "startLine": 5, "endLine": 5}],
        "compositions": [
            {"id": "TitleCard", "kind": "Composition", "line": 8, "endLine": 8},
            {
                "id": None,
                "kind": "Still",
                "line": 9,
                "endLine": 9,
                "dynamic": True,
                "idAsWritten": "{ID}",
            },
        ],
    }


def test_a_broken_file_has_an_outline_and_says_so(desk: Desk) -> None:
    desk.put("a.ts", b"export const a = 1;\nexport const b = (;\n")
    answer = desk.call("GetSandboxFileOutline", path="a.ts")
    assert [each["name"] for each in answer["exports"]] == ["a", "b"]
    assert answer["syntaxErrors"][0]["line"] == 2
    assert answer["note"] == "the file has syntax errors; something may be missing here"


def test_a_file_of_another_kind_has_none(desk: Desk) -> None:
    desk.put("a.css", b"a {}\n")
    assert desk.call("GetSandboxFileOutline", path="a.css")["code"] == "no_grammar"
    assert desk.call("GetSandboxFileOutline", path="none.ts")["code"] == "not_found_file"


def test_an_outline_is_bounded_and_names_the_lists_that_were_cut(desk: Desk) -> None:
    many = "".join(f"export const {'n' * 200}{at} = {at};\n" for at in range(500))
    names = ", ".join(f"i{at}" for at in range(2000))
    desk.put("a.ts", f'import {{{names}}} from "{"x" * 5000}";\n{many}'.encode())
    text = desk.box.run("GetSandboxFileOutline", '{"path": "a.ts"}')
    answer = json.loads(text)
    assert len(text) < ANSWER_CHARS_MAX / 2
    assert answer["cut"] == ["exports"]
    assert answer["imports"][0]["names"][-1] == "… and 1960 more"
    assert answer["exports"][0]["name"] == "n" * 119 + "…"


def test_an_outline_is_no_reading(desk: Desk) -> None:
    desk.put("a.ts", b"let a = 1;\n")
    desk.call("ReadSandboxFile", path="a.ts")
    desk.put("a.ts", b"let a = 2;\n")
    desk.call("GetSandboxFileOutline", path="a.ts")
    assert desk.edit("a.ts", "a", "b")["code"] == "stale"


def test_an_edit_that_breaks_the_syntax_is_made_and_says_so(desk: Desk) -> None:
    desk.put("a.ts", b"let a = (1 + 2);\n")
    answer = desk.edit("a.ts", "2)", "2")
    assert (answer["ok"], desk.data("a.ts")) == (True, b"let a = (1 + 2;\n")
    assert [error["line"] for error in answer["newSyntaxErrors"]] == [1]
    assert set(answer["newSyntaxErrors"][0]) == {"line", "column", "error"}


def test_an_edit_of_a_file_that_was_broken_before_says_nothing_of_syntax(desk: Desk) -> None:
    desk.put("a.ts", b"let a = (1;\nlet b = 2;\n")
    assert "newSyntaxErrors" not in desk.edit("a.ts", "b = 2", "b = (2")


def test_a_new_file_that_is_broken_says_so(desk: Desk) -> None:
    answer = desk.call("WriteSandboxFile", path="a.ts", content="let a = (;\n")
    assert (answer["ok"], len(answer["newSyntaxErrors"])) == (True, 1)
    assert "newSyntaxErrors" not in desk.call("WriteSandboxFile", path="a.md", content="let (;\n")
