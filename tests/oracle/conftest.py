from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.oracle.cases import MakeWorld
from tests.oracle.machine import MEMORY
from tests.oracle.scenes import Scene
from tests.oracle.world import World


@pytest.fixture
def make_world() -> Iterator[MakeWorld]:
    folders: list[TemporaryDirectory[str]] = []

    def make(scene: Scene) -> World:
        folders.append(TemporaryDirectory(dir=MEMORY))
        return World(scene, Path(folders[-1].name))

    yield make
    for folder in folders:
        folder.cleanup()
