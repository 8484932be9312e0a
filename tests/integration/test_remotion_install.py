"""What is said when something that compositions are rendered with is missing, and of messages."""

import json
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from reprise.errors import BadInput, ToolFailed
from resources.remotion_install import NEEDED, find_install
from resources.remotion_job import RenderTalk
from tests.remotion_project import TEMPLATE

Program = Callable[[str, str], str]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Makes a program that tells its version."""

    def make(name: str, says: str) -> str:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\necho '{says}'\n")
        path.chmod(0o755)
        return str(path)

    return make


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """A template with all its packages."""
    folder = tmp_path / "template"
    versions = {name: "4.0.527" if "remotion" in name else "19.3.1" for name in NEEDED}
    for name, version in versions.items():
        package = folder / "node_modules" / name / "package.json"
        package.parent.mkdir(parents=True)
        package.write_text(json.dumps({"version": version}))
    (folder / "package.json").write_text(json.dumps({"dependencies": versions}))
    return folder


def test_what_is_there_is_found_with_its_versions(template: Path, program: Program) -> None:
    node, browser = program("node", "v20.1.0"), program("headless_shell", "Chromium 156.0.1 x")
    found = find_install(template, node=node, browser=browser)
    assert found.versions == {
        "remotion": "4.0.527",
        "@remotion/bundler": "4.0.527",
        "@remotion/renderer": "4.0.527",
        "react": "19.3.1",
        "react-dom": "19.3.1",
        "node": "20.1.0",
        "chromium": "156.0.1",
    }
    assert found.packages == (template / "node_modules").resolve()
    assert found.chrome_mode == "headless-shell"


def test_programs_are_asked_for_their_version_without_the_environment(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPRISE_PROVIDERS__MAIN__API_KEY", "secret")
    monkeypatch.setenv("NODE_OPTIONS", "--require=other")
    seen = tmp_path / "seen"
    node, browser = tmp_path / "node", tmp_path / "chromium"
    for program, says in ((node, "v20.1.0"), (browser, "Chromium 156.0")):
        program.write_text(f"#!/bin/sh\nenv >> {seen}\necho '{says}'\n")
        program.chmod(0o755)
    find_install(template, node=str(node), browser=str(browser))
    names = {line.partition("=")[0] for line in seen.read_text().splitlines()}
    assert names <= {"HOME", "LANG", "PATH", "PWD", "SHLVL", "_", "OLDPWD"}


def test_missing_programs_are_named_with_their_settings(
    template: Path, program: Program, tmp_path: Path
) -> None:
    node, browser = program("node", "v20.1.0"), program("chromium", "Chromium 156.0")
    none = str(tmp_path / "none")
    with pytest.raises(BadInput, match=r"needs Node\.js 18 or newer.*REPRISE_SANDBOX__NODE"):
        find_install(template, node=none, browser=browser)
    with pytest.raises(BadInput, match=r"needs Chromium.*REPRISE_SANDBOX__CHROMIUM"):
        find_install(template, node=node, browser=none)


@pytest.mark.parametrize(
    ("says", "message"), [("v16.20.2", "is 16.20.2"), ("hello", "does not tell its version")]
)
def test_another_node_is_refused(template: Path, program: Program, says: str, message: str) -> None:
    browser = program("chromium", "Chromium 156.0")
    with pytest.raises(BadInput, match=message):
        find_install(template, node=program("node", says), browser=browser)


def test_packages_that_are_missing_or_others_are_named_with_the_folder(
    template: Path, program: Program
) -> None:
    programs = {"node": program("node", "v20.1.0"), "browser": program("chromium", "C 156.0")}
    bundler = template / "node_modules" / "@remotion" / "bundler"
    (bundler / "package.json").write_text('{"version": "4.0.1"}')
    with pytest.raises(BadInput, match=r"other versions than @remotion/bundler 4\.0\.1: run `npm"):
        find_install(template, **programs)
    shutil.rmtree(bundler)
    with pytest.raises(BadInput) as caught:
        find_install(template, **programs)
    assert "(@remotion/bundler missing): run `npm ci`" in str(caught.value)
    assert repr(str(template)) in str(caught.value)
    (template / "package.json").unlink()
    with pytest.raises(BadInput, match=r"has no `package\.json`"):
        find_install(template, **programs)


def talk_of(*told: object) -> RenderTalk:
    spans = {"bundling": (0.0, 0.1), "opening": (0.1, 0.2), "frames": (0.2, 0.9)}
    talk = RenderTalk(lambda _text, _share: None, spans, {Path("/a/tree"): ""})
    for each in told:
        talk.hear(json.dumps(each).encode())
    return talk


def test_messages_hold_no_folder_of_the_machine_and_are_cut() -> None:
    text = "x in /a/tree/src/a.tsx:3:1\n    at /a/tree/b.js\n" + "y\n" * 500
    talk = talk_of({"event": "failed", "kind": "build", "message": text})
    with pytest.raises(ToolFailed, match=r"does not build: x in src/a\.tsx:3:1") as caught:
        talk.raise_failure()
    assert "/a/tree" not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 14


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"hello", b"[1]", b"3", b"\xff", b"[" * 100_000),
        *(b'{"event": "none"}', b'{"event": "frames"}', b'{"event": "frames", "done": "x"}'),
        b'{"event": "composition", "width": 2, "height": 2, "frames": 1}',
        b'{"event": "composition", "width": 2, "height": 2, "frames": 1, "fps": 0}',
        b'{"event": "composition", "width": 2, "height": null, "frames": 1, "fps": 25}',
        b'{"event": "composition", "width": 1e999, "height": 2, "frames": 1, "fps": 25}',
    ],
)
def test_what_is_no_word_of_the_script_is_passed_over(line: bytes) -> None:
    talk = talk_of()
    talk.hear(line)
    talk.raise_failure()
    assert not talk.finished


@pytest.mark.parametrize(
    ("fps", "rate"),
    [(25, Fraction(25)), (29.97, Fraction(30000, 1001)), (23.976, Fraction(24000, 1001))],
)
def test_a_rate_is_the_fraction_that_it_stands_for(fps: float, rate: Fraction) -> None:
    facts = {"event": "composition", "width": 2, "height": 2, "frames": 1, "fps": fps}
    assert talk_of(facts).rate == rate


def test_the_lock_names_one_exact_version_and_no_address() -> None:
    lock = (TEMPLATE / "package-lock.json").read_text()
    assert "resolved" not in lock
    assert "://" not in lock
