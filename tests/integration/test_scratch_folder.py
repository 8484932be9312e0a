"""Scratch folders of the living and the dead."""

import signal
from pathlib import Path

import pytest

from reprise.errors import StoreUnusable
from resources.scratch_folder import ScratchFolder, is_in_use
from tests.child_process import start_python

CHILD = """
    import sys
    from pathlib import Path
    from resources.scratch_folder import ScratchFolder
    folder = ScratchFolder(Path(sys.argv[1]))
    (folder.path / "work").write_text("half done")
    print(folder.path, flush=True)
    sys.stdin.read()
"""


def test_a_folder_goes_with_its_process_and_twice_does_no_harm(tmp_path: Path) -> None:
    folder = ScratchFolder(tmp_path / "scratch")
    (folder.path / "deep").mkdir()
    assert is_in_use(folder.path)

    folder.close()
    folder.close()

    assert list((tmp_path / "scratch").iterdir()) == []
    assert not is_in_use(folder.path)


def test_what_a_killed_process_left_is_removed_and_the_living_are_left_alone(
    tmp_path: Path,
) -> None:
    parent = tmp_path / "scratch"
    with start_python(CHILD, str(parent)) as child:
        assert child.stdout is not None
        theirs = Path(child.stdout.readline().strip())

        mine = ScratchFolder(parent)
        assert (theirs / "work").read_text() == "half done"
        assert is_in_use(theirs)

        child.send_signal(signal.SIGKILL)
        child.wait(30)

    assert not is_in_use(theirs)
    later = ScratchFolder(parent)
    assert not theirs.exists()
    assert mine.path.exists()
    mine.close()
    later.close()
    assert list(parent.iterdir()) == []


def test_a_place_that_cannot_be_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreUnusable, match="a file is where a folder is needed"):
        ScratchFolder(tmp_path / "file")
