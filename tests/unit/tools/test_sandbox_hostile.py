"""Whatever a model asks of a sandbox: no call raises, nothing outside is read or touched."""

import json
import os
import threading
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from reprise.agents.loop import AgentTask
from reprise.model.agent import AgentDefinition, ToolGroup
from reprise.model.conversation import ModelReply, ToolCall
from reprise.model.result import Usage
from reprise.tools.access import SandboxDoor, ToolAccess
from reprise.tools.catalog import tool_names
from reprise.tools.toolbox import ANSWER_CHARS_MAX, Toolbox
from resources.memory_sandbox import MemorySandbox
from resources.sandbox.folder import FolderSandbox
from resources.scripted_provider import ScriptedProvider
from tests.agent_loop import run_agent
from tests.sandbox_desk import GROUPS, Desk

TOOLS = tool_names(GROUPS)
SECRET = "outside the sandbox"

any_text = st.text(st.characters(exclude_categories=()), max_size=8)
"""With lone surrogates, NUL and what else there is."""
plausible = st.sampled_from(["a.ts", "b.ts", "", "a", "x\n", "../a.ts", "0123456789abcdef"])
numbers = st.integers() | st.floats() | st.sampled_from([10**400, -(10**40), 1e308, 2.0])
edits = st.fixed_dictionaries(
    {}, optional={"oldText": plausible | any_text, "newText": any_text, "replaceAll": st.booleans()}
)
values = plausible | any_text | numbers | st.booleans() | st.none() | st.lists(edits, max_size=3)
arguments = st.dictionaries(
    st.sampled_from(["path", "folder", "offset", "content", "oldText", "edits", "startLine"])
    | any_text,
    values,
    max_size=5,
)
fitting = st.fixed_dictionaries(
    {"path": plausible | any_text},
    optional={
        "folder": any_text,
        "offset": numbers,
        "content": any_text,
        "oldText": plausible | any_text,
        "newText": plausible | any_text,
        "replaceAll": st.booleans(),
        "edits": st.lists(edits, max_size=3),
        "expectHash": plausible | any_text,
        "startLine": numbers,
        "lineCount": numbers,
    },
)


def only_known(tool: str, given: dict[str, object]) -> dict[str, object]:
    """Return what of the arguments a tool's schema has a name for."""
    desk = Desk(MemorySandbox())
    schema = next(each for each in desk.box.schemas if each.name == tool).parameters
    properties = schema["properties"]
    assert isinstance(properties, dict)
    return {name: value for name, value in given.items() if name in properties}


def is_answer(text: str) -> bool:
    text.encode()
    return text.startswith('{"ok": ') and len(text) <= ANSWER_CHARS_MAX


@given(st.lists(st.tuples(st.sampled_from(TOOLS), arguments | fitting), max_size=4))
def test_any_arguments_are_answered(calls: list[tuple[str, dict[str, object]]]) -> None:
    desk = Desk(MemorySandbox({"a.ts": b"a\nb\n", "b.ts": b"x\r\n"}))
    for tool, given_ in calls:
        for said in (given_, only_known(tool, given_)):
            assert is_answer(desk.box.run(tool, json.dumps(said)))


@given(st.sampled_from(TOOLS), st.text(max_size=60) | st.integers(0, 60).map(lambda n: "[" * n))
def test_any_text_as_arguments_is_answered(tool: str, text: str) -> None:
    desk = Desk(MemorySandbox({"a.ts": b"a\n"}))
    assert is_answer(desk.box.run(tool, text))


def test_numbers_of_thousands_of_digits_are_answered() -> None:
    desk = Desk(MemorySandbox({"a.ts": b"a\n"}))
    for digits in (400, 4299, 4301):
        number = "9" * digits
        for tool, name in (("ReadSandboxFile", "offset"), ("ReadSandboxFileLines", "startLine")):
            for sign in ("", "-"):
                said = f'{{"path": "a.ts", "{name}": {sign}{number}}}'
                assert is_answer(desk.box.run(tool, said))


LITERAL = ("%2e%2e/outside/secret.txt", "~/secret.txt", "file:///etc/passwd", "$HOME/a", "*")
"""What only a shell or a browser reads otherwise: names of files in the sandbox."""


def hostile_paths(outside: Path) -> list[str]:
    return [
        "../outside/secret.txt",
        "src/../../outside/secret.txt",
        str(outside / "secret.txt"),
        f"/{outside}/secret.txt",
        "link-file",
        "link-folder/secret.txt",
        "link-folder/new.txt",
        "link-up/outside/secret.txt",
        "dangling",
        "loop",
        "hard.txt",
        "pipe",
        "src",
        "..\\outside\\secret.txt",
        "secret.txt\0",
        "/dev/zero",
        "/proc/self/environ",
        ".",
        "",
    ]


def hostile_folder(tmp_path: Path) -> tuple[Path, Path]:
    root, outside = tmp_path / "ws", tmp_path / "outside"
    (root / "src").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret.txt").write_text(SECRET)
    (outside / "hard.txt").write_text(SECRET)
    (root / "a.ts").write_text("a\n")
    (root / "link-file").symlink_to(outside / "secret.txt")
    (root / "link-folder").symlink_to(outside)
    (root / "link-up").symlink_to("..")
    (root / "dangling").symlink_to(outside / "made.txt")
    (root / "loop").symlink_to("loop")
    os.link(outside / "hard.txt", root / "hard.txt")
    os.mkfifo(root / "pipe")
    return root, outside


def state(folder: Path) -> dict[str, tuple[str, int, int]]:
    return {
        path.name: (path.read_text(), path.stat().st_mtime_ns, path.stat().st_mode)
        for path in folder.iterdir()
    }


def calls_of(paths: list[str]) -> list[tuple[str, dict[str, object]]]:
    found: list[tuple[str, dict[str, object]]] = []
    for path in paths:
        edit = {"oldText": SECRET, "newText": "gone", "replaceAll": True}
        found += [
            ("ReadSandboxFile", {"path": path}),
            ("ReadSandboxFileLines", {"path": path}),
            ("WriteSandboxFile", {"path": path, "content": "gone"}),
            ("EditSandboxFile", {"path": path, **edit}),
            ("ApplySandboxFileEdits", {"path": path, "edits": [edit]}),
            ("UndoSandboxFileEdit", {"path": path}),
            ("ListSandboxFiles", {"folder": path}),
        ]
    return found


def test_an_agent_that_asks_for_what_is_outside_gets_and_changes_nothing_of_it(
    tmp_path: Path,
) -> None:
    root, outside = hostile_folder(tmp_path)
    before = state(outside)
    calls = calls_of(hostile_paths(outside))
    turns = [calls[at : at + 14] for at in range(0, len(calls), 14)]
    script: list[ModelReply | str] = [
        ModelReply(
            text="",
            tool_calls=tuple(
                ToolCall(id=f"call_{turn}_{at}", name=name, arguments=json.dumps(said))
                for at, (name, said) in enumerate(called)
            ),
            finish_reason="tool_calls",
            usage=Usage(calls=1),
            model="scripted-1",
        )
        for turn, called in enumerate(turns)
    ]
    provider = ScriptedProvider([*script, "I could not get out."])
    agent = AgentDefinition(
        id="intruder", agent_type="x", system_prompt="Get out.", tool_groups=GROUPS
    )
    access = ToolAccess(sandbox=SandboxDoor(FolderSandbox(root)))
    answer = run_agent(
        AgentTask(agent=agent),
        provider,
        cancelled=lambda: False,
        tools=Toolbox(agent.tool_groups, access),
    )
    assert answer.output == "I could not get out."
    assert answer.turns == len(turns) + 1
    assert state(outside) == before
    said = [each.content for each in provider.requests[-1].messages if each.role == "tool"]
    assert len(said) == len(calls)
    assert [text for text in said if SECRET in text] == []
    answered = [(each, json.loads(text)) for each, text in zip(calls, said, strict=True)]
    assert [each for each, told in answered if told["ok"] and "path" in each[1]] == []
    assert (root / "a.ts").read_text() == "a\n"


def test_a_path_that_only_a_shell_would_expand_names_a_file_of_the_sandbox(tmp_path: Path) -> None:
    root, outside = hostile_folder(tmp_path)
    before = state(outside)
    desk = Desk(FolderSandbox(root))
    for path in LITERAL:
        assert desk.call("WriteSandboxFile", path=path, content="x")["created"] is True
        assert (root / path).read_text() == "x"
    assert state(outside) == before


def test_a_folder_that_turns_into_a_link_while_tools_work_lets_nothing_out(tmp_path: Path) -> None:
    root, outside = hostile_folder(tmp_path)
    folder, real, link = root / "src", root / "src-real", root / "src-link"
    (folder / "secret.txt").write_text("inside\n")
    link.symlink_to(outside)
    before = state(outside)
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            folder.rename(real)
            link.rename(folder)
            folder.rename(link)
            real.rename(folder)

    swapper = threading.Thread(target=swap)
    swapper.start()
    desk = Desk(FolderSandbox(root))
    answers = []
    try:
        for at in range(150):
            path, mine = "src/secret.txt", desk.beside()
            answers += [
                mine.call("ReadSandboxFile", path=path),
                mine.edit(path, "inside", f"inside {at}"),
                mine.call("UndoSandboxFileEdit", path=path),
                mine.edit(path, SECRET, "gone"),
            ]
    finally:
        done.set()
        swapper.join()
    assert state(outside) == before
    assert SECRET not in json.dumps(answers)


def test_an_agent_without_the_group_reaches_no_sandbox() -> None:
    files = MemorySandbox({"a.ts": b"a\n"})
    access = ToolAccess(sandbox=SandboxDoor(files))
    box = Toolbox([ToolGroup.SANDBOX_BROWSE], access)
    said = json.dumps({"path": "a.ts", "content": "x"})
    assert json.loads(box.run("WriteSandboxFile", said))["ok"] is False
    assert files.read("a.ts") == b"a\n"
