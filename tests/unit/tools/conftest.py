"""Sandboxes of both kinds with their tools."""

from pathlib import Path

import pytest

from resources.memory_sandbox import MemorySandbox
from resources.sandbox.folder import FolderSandbox
from tests.sandbox_desk import Desk


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder of a sandbox."""
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


@pytest.fixture
def folder_desk(root: Path) -> Desk:
    """An agent's tools over that folder."""
    return Desk(FolderSandbox(root))


@pytest.fixture(params=["folder", "memory"])
def desk(request: pytest.FixtureRequest, root: Path) -> Desk:
    """An agent's tools over an empty sandbox, of either kind."""
    return Desk(MemorySandbox() if request.param == "memory" else FolderSandbox(root))
