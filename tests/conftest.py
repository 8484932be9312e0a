"""What holds for every test: the marks that need `--all`, and the golden files' option.

A test that takes minutes is marked `slow`; one that drives a browser is marked `browser`; one that
renders with Node is marked `remotion`. Plain `bin/test` leaves them out and says so at the end;
`--all` leaves out the last where Node or Chromium is missing, and says that; nothing is skipped in
silence.
"""

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.remotion_project import installed_template

# A busy machine is no failure: nothing in the suite is a timed test.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

LEFT_OUT_REASONS = {
    "slow": "minutes each",
    "browser": "need Debian's chromium and chromium-driver",
    "remotion": "need Node.js, npm and chromium",
}
"""Each mark that a plain `bin/test` leaves out, and why."""

BROWSER_PROGRAMS = ("chromium", "chromedriver")
REMOTION_PROGRAMS = ("node", "npm", "chromium")

_left_out: Counter[str] = Counter()
_cannot: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the expected files under tests/golden; read the difference before a commit",
    )
    parser.addoption(
        "--same-answers",
        action="append",
        default=[],
        metavar="NAMES",
        help="with --update-golden: executors whose code changed and whose answers did not",
    )


@pytest.fixture(scope="session")
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are rewritten instead of compared."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(scope="session")
def same_answers(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Executors whose code changed and whose answers did not, as the caller says."""
    return tuple(request.config.getoption("--same-answers"))


@pytest.fixture(scope="session")
def remotion_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The template with its packages, for tests that render."""
    return installed_template(tmp_path_factory.mktemp("remotion"))


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    for item in items:
        for mark in LEFT_OUT_REASONS:
            if item.get_closest_marker(mark) is not None:
                _left_out[mark] += 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    missing = [program for program in REMOTION_PROGRAMS if shutil.which(program) is None]
    out = [item for item in items if item.get_closest_marker("remotion") is not None]
    if missing and out and not config.option.markexpr:
        items[:] = [item for item in items if item not in out]
        _cannot.append(f"{len(out)} marked remotion: PATH lacks {' and '.join(missing)}")


def pytest_collection_finish(session: pytest.Session) -> None:
    missing = [program for program in BROWSER_PROGRAMS if shutil.which(program) is None]
    asked = [item for item in session.items if item.get_closest_marker("browser") is not None]
    if asked and missing and not session.config.option.collectonly:
        message = (
            f"{len(asked)} chosen tests drive a browser and PATH lacks {' and '.join(missing)}: "
            "apt-get install chromium chromium-driver, or leave them out with -m 'not browser'"
        )
        raise pytest.UsageError(message)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not _left_out and not _cannot:
        return
    terminalreporter.section("left out")
    for line in _cannot:
        terminalreporter.write_line(line)
    if not _left_out:
        return
    for mark, count in sorted(_left_out.items()):
        terminalreporter.write_line(f"{count} marked {mark} ({LEFT_OUT_REASONS[mark]})")
    terminalreporter.write_line("`bin/test --all` runs them too")
