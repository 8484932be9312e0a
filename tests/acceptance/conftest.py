"""A user with a home of their own for each test, and footage that is made once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.command_line import User
from tests.acceptance.silent_server import SilentServer, silent_server
from tests.acceptance.warm_start import WarmStart
from tests.media_files import clip


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmStart]:
    started = WarmStart()
    yield started
    started.close()


@pytest.fixture
def user(tmp_path: Path, warm: WarmStart) -> User:
    return User(tmp_path, warm)


@pytest.fixture
def silent() -> Iterator[SilentServer]:
    with silent_server() as server:
        yield server


@pytest.fixture(scope="session")
def footage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five seconds of a moving picture with a tone."""
    return clip(tmp_path_factory.mktemp("footage") / "tone.mp4", seconds=5.0)


@pytest.fixture(scope="session")
def long_footage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More of it, large enough that measuring and encoding take their time."""
    folder = tmp_path_factory.mktemp("footage")
    return clip(folder / "long.mp4", seconds=10.0, size="1280x720")


@pytest.fixture
def brief(tmp_path: Path) -> Path:
    path = tmp_path / "brief.md"
    path.write_text("# Tones for testers\n\nAudience: testers\n\nGoal: come to the tone show\n")
    return path
