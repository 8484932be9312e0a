"""Function steps' callables from Python files: the workflows folder, this folder, then sys.path.

The standard library and installed packages are never the user's own: a callable in one can be
used, but has no fingerprint and so is not cached. A file is read anew for every step; when any text
changed, everything of the user's own is loaded afresh.

Source: specification C20; the loading is in resources/own_modules.py.
"""

import functools
import sys
import sysconfig
import threading
import tokenize
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from reprise.errors import BadInput
from reprise.ports import ModuleSource
from resources.own_modules import OwnFunction, OwnModules

SIZE_BYTES_MAX = 4 * 2**20
"""Largest module that is read."""

LISTED_MAX = 500
"""Most file names that are looked at to guess what a wrong name meant."""


def function_folders(workflows: Path) -> tuple[Path, ...]:
    """Return the folders in which functions are looked for before sys.path."""
    return (workflows, workflows / "functions")


class PythonFunctions:
    """Loads `module:callable` from files.

    Args:
        search_paths: Folders to look in first, in this order.
        more_paths: Gives further ones at the time of asking; by default the current folder and
            what of sys.path is neither the standard library nor installed packages.
    """

    def __init__(
        self,
        search_paths: Sequence[Path],
        more_paths: Callable[[], Sequence[Path]] | None = None,
    ) -> None:
        self._first = tuple(path.absolute() for path in search_paths)
        self._more = more_paths or _own_sys_path
        self._modules = OwnModules(self._find)
        self._lock = threading.Lock()

    def load(self, reference: str) -> OwnFunction:
        """Load `module:callable`, anew if any text of the user's own changed.

        Raises:
            UnknownName: There is no such module, or no such name in it.
            BadInput: The module cannot be loaded, or the name is no plain function of one argument.
        """
        with self._lock:
            if not self._modules.is_current():
                self._modules = OwnModules(self._find)
            modules = self._modules
        looked_in = ", ".join(str(path) for path in self._first) + " and sys.path"
        return modules.function(reference, looked_in=looked_in, known=self._known())

    def _find(self, name: str) -> ModuleSource | None:
        for folder in (*self._first, *self._more()):
            path = folder.joinpath(*name.split("."))
            for file, is_package in (
                (path / "__init__.py", True),
                (path.with_suffix(".py"), False),
            ):
                if file.is_file():
                    text = _text(file)
                    return ModuleSource(name=name, text=text, path=str(file), is_package=is_package)
        return None

    def _known(self) -> Iterator[str]:
        for folder in self._first:
            if folder.is_dir():
                for _, path in zip(range(LISTED_MAX), sorted(folder.iterdir()), strict=False):
                    if path.suffix == ".py" or (path / "__init__.py").is_file():
                        yield path.stem


def _text(file: Path) -> str:
    if file.stat().st_size > SIZE_BYTES_MAX:
        message = f"{file}: the file is larger than {SIZE_BYTES_MAX} bytes; shorten it"
        raise BadInput(message)
    try:
        # In the encoding that the file declares, as Python reads it.
        with tokenize.open(file) as stream:
            return stream.read()
    except (SyntaxError, UnicodeDecodeError, OSError) as error:
        message = f"{file}:1: the file cannot be read as Python: {error}"
        raise BadInput(message) from error


def _own_sys_path() -> Sequence[Path]:
    return _own_folders(Path.cwd(), tuple(sys.path))


@functools.lru_cache(maxsize=8)
def _own_folders(here: Path, entries: tuple[str, ...]) -> Sequence[Path]:
    # Performance: asked for every name that a user's module imports, whenever a step is loaded.
    installed = {Path(path).resolve() for path in sysconfig.get_paths().values()}
    folders = [here, *(here / entry for entry in entries if entry)]
    return [
        folder
        for folder in dict.fromkeys(folders)
        if folder.is_dir()
        and folder.resolve() not in installed
        and not {"site-packages", "dist-packages", "lib-dynload"} & set(folder.parts)
    ]
