import json
import os
from pathlib import Path

import pytest

from reprise.errors import ToolFailed
from resources.ffmpeg import FfmpegLocator, find_ffmpeg


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def counting(folder: Path) -> tuple[Path, Path]:
    """Make an ffmpeg that writes a line each time it runs."""
    log = folder / "runs.txt"
    answer = f"echo run >> {log}; echo 'ffmpeg version 7.7 Copyright (c) them'"
    return program(folder / "ffmpeg", answer), log


def test_the_binary_of_the_wheel_comes_before_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = find_ffmpeg(None, None)
    assert "imageio_ffmpeg" in found.path.parts
    assert found.version.startswith("ffmpeg version")
    assert len(found.build_digest) == 64


def test_an_explicit_binary_comes_first(tmp_path: Path) -> None:
    explicit, _ = counting(tmp_path)
    found = find_ffmpeg(explicit, None)
    assert (found.path, found.version) == (explicit.resolve(), "ffmpeg version 7.7")


def test_an_explicit_binary_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match=r"nowhere.* is not there or not executable"):
        find_ffmpeg(tmp_path / "nowhere", None)


def test_a_program_that_is_not_ffmpeg_is_an_error(tmp_path: Path) -> None:
    other = program(tmp_path / "other", "echo 'hello'")
    with pytest.raises(ToolFailed, match="'other' is not ffmpeg"):
        find_ffmpeg(other, None)


def test_a_program_that_fails_is_an_error_with_its_words(tmp_path: Path) -> None:
    broken = program(tmp_path / "broken", "echo 'no libm' >&2; exit 3")
    with pytest.raises(ToolFailed, match="no libm"):
        find_ffmpeg(broken, None)


def test_a_remembered_binary_is_not_run_again(tmp_path: Path) -> None:
    explicit, log = counting(tmp_path)
    memo = tmp_path / "cache" / "ffmpeg.json"
    first = find_ffmpeg(explicit, memo)
    runs = log.read_text()
    assert find_ffmpeg(explicit, memo) == first
    assert log.read_text() == runs


def test_a_replaced_binary_is_asked_again(tmp_path: Path) -> None:
    explicit, _ = counting(tmp_path)
    memo = tmp_path / "ffmpeg.json"
    old = find_ffmpeg(explicit, memo)
    program(explicit, "echo 'ffmpeg version 8.8 Copyright'")
    new = find_ffmpeg(explicit, memo)
    assert new.version == "ffmpeg version 8.8"
    assert new.build_digest != old.build_digest


@pytest.mark.parametrize("content", ["", "{", "[]", '{"a": 1}', '{"a": {"version": 1}}'])
def test_a_broken_memo_is_no_error(tmp_path: Path, content: str) -> None:
    explicit, _ = counting(tmp_path)
    memo = tmp_path / "ffmpeg.json"
    memo.write_text(content)
    assert find_ffmpeg(explicit, memo).version == "ffmpeg version 7.7"
    assert len(json.loads(memo.read_text())) >= 1


def test_a_memo_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    explicit, _ = counting(tmp_path)
    (tmp_path / "file").write_text("")
    found = find_ffmpeg(explicit, tmp_path / "file" / "ffmpeg.json")
    assert found.version == "ffmpeg version 7.7"


def test_a_locator_runs_nothing_until_it_is_asked(tmp_path: Path) -> None:
    explicit, log = counting(tmp_path)
    locator = FfmpegLocator(explicit, None)
    assert not log.exists()
    assert locator.binary() is locator.binary()
    assert log.exists()
