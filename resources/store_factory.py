"""A cache store of the user's own, named `module:factory` in the settings.

The module is looked for as a Function step's is: in the given folders, the current one, then
sys.path. The factory takes no argument and gives an object with `get` and `set`; see
resources/user_entry_store.py.

Source: specification C15.
"""

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path

from reprise.errors import StoreUnusable


def make_store(reference: str, folders: Sequence[Path]) -> object:
    """Return what the factory gives; called once a process.

    Raises:
        StoreUnusable: There is no such factory, or it failed; says which and why.
    """
    module, _, name = reference.partition(":")
    try:
        with _on_path([*folders, Path.cwd()]):
            factory = attrgetter(name)(importlib.import_module(module))
            store: object = factory()
    except Exception as error:
        # Whatever a stranger's module raises: without its store the cache is off, and runs go on.
        looked_in = ", ".join(str(folder) for folder in folders)
        message = (
            f"cache store {reference!r}: {type(error).__name__}: {error}; it is looked for in"
            f" {looked_in}, here and on sys.path"
        )
        raise StoreUnusable(message) from error
    return store


@contextmanager
def _on_path(folders: Sequence[Path]) -> Iterator[None]:
    added = [str(folder) for folder in folders if str(folder) not in sys.path]
    # At the end: a file of the user's takes nobody else's name.
    sys.path.extend(added)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        for folder in added:
            sys.path.remove(folder)
