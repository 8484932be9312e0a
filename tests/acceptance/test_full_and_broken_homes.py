"""A home without space, without rights, or with broken files in it."""

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.command_line import User
from tests.acceptance.warm_start import FILE_BYTES_MAX, WarmStart

FILLER = "filler"


class MountedHome:
    """A user's home on a file system of its own."""

    def __init__(self, user: User, warm: WarmStart) -> None:
        self.user = user
        self._warm = warm
        user.home.mkdir()
        warm.inside("mount", "-t", "tmpfs", "-o", "size=48m", "none", str(user.home))
        self.seen = warm.seen(user.home)

    def fill(self, *, leave_bytes: int) -> None:
        """Leave no more room than this."""
        free = shutil.disk_usage(self.seen).free
        with (self.seen / FILLER).open("wb") as stream:
            stream.write(bytes(max(0, free - leave_bytes)))

    def empty(self) -> None:
        """Give the room back."""
        (self.seen / FILLER).unlink()

    def make_writable(self, writable: bool) -> None:
        """Mount it anew, for reading only or for writing too."""
        option = "remount,rw" if writable else "remount,ro"
        self._warm.inside("mount", "-o", option, str(self.user.home))

    def leftovers(self) -> list[Path]:
        """Return files that are half written."""
        return [
            *self.seen.rglob(".part-*"),
            *(path for path in self.seen.glob("scratch/*") if path.suffix != ".lock"),
        ]


@pytest.fixture
def mounted(user: User, warm: WarmStart) -> Iterator[MountedHome]:
    if not warm.can_mount:
        pytest.skip("needs the right to mount")
    yield MountedHome(user, warm)
    warm.inside("umount", "-l", str(user.home))


@pytest.mark.parametrize("leave_bytes", [0, 600_000])
def test_a_full_disk_is_one_clear_error_and_with_space_the_run_works(
    mounted: MountedHome, footage: Path, leave_bytes: int
) -> None:
    user = mounted.user
    user.add("p", footage)
    assert user.call("run", "look", "p").code == 0
    mounted.fill(leave_bytes=leave_bytes)

    done = user.call("run", "cut", "p", "--cache", "refresh", "--json")

    assert done.code == 1, done
    assert any(word in done.error for word in ("full", "space", "room")), done.error
    assert done.json["status"] == "failed"
    assert mounted.leftovers() == []
    mounted.empty()
    again = user.call("run", "cut", "p")
    assert again.code == 0, again.err


def test_files_that_find_no_room_are_not_in_the_project(
    mounted: MountedHome, footage: Path
) -> None:
    user = mounted.user
    assert user.call("project", "list").code == 0
    mounted.fill(leave_bytes=100_000)

    done = user.call("project", "add", "p", footage)

    assert done.code == 1
    assert "full" in done.error
    assert mounted.leftovers() == []
    mounted.empty()
    user.add("p", footage)
    files = user.call("project", "show", "p", "--json").json["files"]
    assert [file["name"] for file in files] == ["tone.mp4"]


def test_a_file_that_finds_no_room_leaves_nothing_half_written(user: User, footage: Path) -> None:
    """Where nothing may be mounted too: the kernel lets no file grow beyond a size."""
    assert user.call("project", "list").code == 0
    small = footage.with_name("brief.md")
    small.write_text("# A brief")
    limit = {FILE_BYTES_MAX: str(footage.stat().st_size // 2)}

    done = user.call("project", "add", "p", footage, **limit)

    assert done.code == 1, done
    assert "larger than the system allows; raise the limit" in done.error, done.error
    assert user.leftovers() == []
    assert user.objects("files") == []
    assert user.call("project", "add", "p", small, **limit).code == 0
    user.add("p", footage)
    files = user.call("project", "show", "p", "--json").json["files"]
    assert {file["name"] for file in files} == {"brief.md", "tone.mp4"}


def test_a_run_that_finds_no_room_is_one_clear_error_and_with_room_it_works(
    user: User, footage: Path
) -> None:
    """Where nothing may be mounted too: the databases and the film cannot grow."""
    user.add("p", footage)
    assert user.call("run", "look", "p").code == 0

    done = user.call("run", "cut", "p", "--cache", "refresh", "--json", **{FILE_BYTES_MAX: "20000"})

    assert done.code == 1, done
    assert "Traceback" not in done.err
    words = ("full", "space", "room", "larger than the system allows")
    assert any(word in done.error for word in words), done.error
    assert user.leftovers() == []
    again = user.call("run", "cut", "p")
    assert again.code == 0, again.err


def test_a_read_only_home_is_one_clear_error(mounted: MountedHome, footage: Path) -> None:
    user = mounted.user
    user.add("p", footage)
    mounted.make_writable(False)

    run = user.call("run", "look", "p")
    add = user.call("project", "add", "p", footage.with_name("tone.mp4"))
    fresh = user.call("project", "add", "p", footage, REPRISE_HOME=str(user.home / "new"))

    for done in (run, fresh):
        assert done.code == 1, done
        assert any(word in done.error for word in ("read-only", "writable")), done.error
    assert "Traceback" not in add.err
    mounted.make_writable(True)
    assert user.call("run", "look", "p").code == 0


@pytest.mark.parametrize("name", ["garbage", "newer"])
def test_an_unusable_cache_is_off_with_one_warning_and_the_run_completes(
    user: User, footage: Path, name: str
) -> None:
    user.add("p", footage)
    cache = user.home / "step-cache.db"
    if name == "garbage":
        cache.write_bytes(b"not a database, and nobody's business" * 100)
    else:
        assert user.call("run", "look", "p").code == 0
        with sqlite3.connect(cache) as connection:
            connection.execute("UPDATE component SET version = 99")
        connection.close()
    before = cache.read_bytes()

    done = user.call("run", "look", "p", "--json")

    assert done.code == 0, done.err
    assert done.json["steps"][0]["cache_reason"] == "store_off"
    assert len([line for line in done.err.splitlines() if line.startswith("WARNING")]) == 1
    assert "step cache is off" in done.err
    assert cache.read_bytes() == before


@pytest.mark.parametrize("name", ["history.db", "projects.db"])
def test_a_broken_file_that_cannot_be_made_again_is_a_clear_error(
    user: User, footage: Path, name: str
) -> None:
    user.add("p", footage)
    for stale in user.home.glob(f"{name}*"):
        stale.unlink()
    (user.home / name).write_bytes(b"not a database, and nobody's business" * 100)

    done = user.call("run", "look", "p", "--json")

    assert done.code == 1
    assert name in done.error
    assert done.json["status"] == "failed"
    assert (user.home / name).read_bytes() == b"not a database, and nobody's business" * 100


def test_a_home_that_is_a_file_is_a_clear_error(user: User, footage: Path) -> None:
    user.home.write_text("a file")

    for command in (["project", "list"], ["project", "add", "p", str(footage)]):
        done = user.call(*command)
        assert "Traceback" not in done.err
        assert done.code in (0, 1)


def test_the_dagster_instance_broken_is_a_clear_error(user: User, footage: Path) -> None:
    user.add("p", footage)
    (user.home / "dagster" / "dagster.yaml").write_text("storage: {nonsense: [\n")

    done = user.call("run", "look", "p")

    assert done.code == 1
    assert "dagster" in done.error
