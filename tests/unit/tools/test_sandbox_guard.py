"""What an agent knows of a file and says of it with a hash, held against what the file is."""

import hashlib
from pathlib import Path

import pytest

from reprise.model.agent import ToolGroup
from resources.memory_sandbox import MemorySandbox
from resources.sandbox import FolderSandbox
from tests.sandbox_desk import Desk

DATA = b"a\n"
DIGEST = hashlib.sha256(DATA).hexdigest()
NOW = hashlib.sha256(b"a\nx\n").hexdigest()[:16]


@pytest.fixture
def desk() -> Desk:
    return Desk(MemorySandbox({"a.ts": DATA}))


@pytest.fixture
def author() -> Desk:
    """An agent that writes and cannot read."""
    return Desk(MemorySandbox({"a.ts": DATA}), groups=[ToolGroup.SANDBOX_AUTHORING])


@pytest.mark.parametrize(
    "named", [DIGEST[:16], DIGEST, DIGEST[:16].upper(), DIGEST.upper(), f" {DIGEST[:16]}\n"]
)
def test_a_hash_may_be_long_in_capitals_or_with_blanks(desk: Desk, named: str) -> None:
    assert desk.edit("a.ts", "a", "b", expectHash=named)["ok"] is True


@pytest.mark.parametrize("named", [DIGEST[:8], "latest", DIGEST[:17], "ü" * 16])
def test_what_is_no_hash_is_told_so(desk: Desk, named: str) -> None:
    answer = desk.edit("a.ts", "a", "b", expectHash=named)
    assert answer["code"] == "bad_arguments"
    assert answer["error"].startswith(f"expectHash {named!r} is no hash, which has 16 hex digits")
    assert desk.data("a.ts") == DATA


def test_another_hash_is_not_said_to_be_a_change_by_somebody_else(desk: Desk) -> None:
    answer = desk.edit("a.ts", "a", "b", expectHash="0" * 16)
    assert answer["code"] == "stale"
    assert answer["hash"] == DIGEST[:16]
    assert answer["error"] == (
        "'a.ts' is not what expectHash names, 0000000000000000 (its hash is "
        f"{DIGEST[:16]} now); nothing was changed. Read it again, then say the change for what it "
        "holds now"
    )


def test_a_hash_of_a_file_that_there_never_was_is_told_so(desk: Desk) -> None:
    answer = desk.call("WriteSandboxFile", path="b.ts", content="b", expectHash="0" * 16)
    assert answer["error"] == (
        "there is no file 'b.ts' to have the hash 0000000000000000; leave out expectHash"
    )


@pytest.mark.parametrize("created", [True, False])
def test_an_undo_that_would_lose_the_work_of_another_says_so(desk: Desk, *, created: bool) -> None:
    path = "new.ts" if created else "a.ts"
    desk.call("WriteSandboxFile", path=path, content="mine\n")
    desk.put(path, b"a\nx\n")
    desk.call("ReadSandboxFile", path=path)
    answer = desk.call("UndoSandboxFileEdit", path=path)
    assert (answer["code"], answer["hash"]) == ("stale", NOW)
    assert answer["error"].endswith(
        "which would be lost; nothing was changed. Change what it holds now instead"
    )
    assert desk.data(path) == b"a\nx\n"


def test_a_link_that_leads_elsewhere_since_it_was_read_is_stale(tmp_path: Path) -> None:
    (tmp_path / "one.ts").write_bytes(b"a\n")
    (tmp_path / "two.ts").write_bytes(b"a, too\n")
    link = tmp_path / "link.ts"
    link.symlink_to("one.ts")
    desk = Desk(FolderSandbox(tmp_path, lock=tmp_path.parent / "lock"))
    desk.call("ReadSandboxFile", path="link.ts")
    link.unlink()
    link.symlink_to("two.ts")
    assert desk.edit("link.ts", "a", "b")["code"] == "stale"
    assert (tmp_path / "two.ts").read_bytes() == b"a, too\n"
    desk.call("ReadSandboxFileLines", path="link.ts")
    assert desk.edit("link.ts", "a", "b")["ok"] is True


def test_who_cannot_read_is_told_how_to_go_on_without(author: Desk) -> None:
    author.call("WriteSandboxFile", path="a.ts", content="mine\n")
    author.put("a.ts", b"a\nx\n")
    answer = author.edit("a.ts", "a", "b")
    assert answer["error"].endswith(
        f"You cannot read it; if the change is meant nonetheless, say it with expectHash {NOW}"
    )
    assert author.edit("a.ts", "a", "b", expectHash=NOW)["ok"] is True
    assert author.data("a.ts") == b"b\nx\n"
