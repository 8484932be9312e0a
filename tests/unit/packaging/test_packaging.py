"""The clone installs as it says: lock, project file, scripts and programs agree."""

import os
import re
import subprocess
import tomllib
from importlib.metadata import entry_points, version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[3]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKED_EXTRAS = ("demo", "test", "dev")
SCRIPTS = ("bin/check", "bin/demo", "bin/lock", "bin/setup", "bin/test", ".ci/run")


def locked_requirements() -> list[Requirement]:
    lines = re.findall(r"^([a-z0-9][^\\\n]*?) *\\$", LOCK, flags=re.MULTILINE)
    return [Requirement(line) for line in lines]


def asked_requirements() -> list[Requirement]:
    project = PROJECT["project"]
    extras = [line for extra in LOCKED_EXTRAS for line in project["optional-dependencies"][extra]]
    return [Requirement(line) for line in project["dependencies"] + extras]


def test_the_lock_names_no_address() -> None:
    assert re.findall(r"\S+://\S+|^-\S+.*$", LOCK, flags=re.MULTILINE) == []


def test_each_locked_package_is_an_exact_version_with_a_hash() -> None:
    blocks = re.split(r"^(?=[a-z0-9])", LOCK, flags=re.MULTILINE)[1:]
    bare = [block.splitlines()[0] for block in blocks if "--hash=sha256:" not in block]
    assert len(blocks) > 100
    assert bare == []
    assert all(str(one.specifier).startswith("==") for one in locked_requirements())


@pytest.mark.parametrize("asked", asked_requirements(), ids=str)
def test_each_dependency_is_locked_within_its_range(asked: Requirement) -> None:
    locked = [
        next(iter(one.specifier)).version
        for one in locked_requirements()
        if canonicalize_name(one.name) == canonicalize_name(asked.name)
    ]
    assert locked
    assert all(asked.specifier.contains(one) for one in locked)


@pytest.mark.parametrize(
    ("package", "pin"),
    [
        ("dagster", "1.13.27"),
        ("dagster-webserver", "1.13.27"),
        ("dagster-dg-cli", "1.13.27"),
        ("dagster-postgres", "0.29.27"),
        ("dagster-aws", "0.29.27"),
    ],
)
def test_dagster_is_pinned_exactly_and_installed_so(package: str, pin: str) -> None:
    asked = {one.name: str(one.specifier) for one in asked_requirements()}
    assert asked[package] == f"=={pin}"
    assert version(package) == pin


def test_the_heavy_whisper_extra_stays_out_of_the_lock() -> None:
    names = {canonicalize_name(one.name) for one in locked_requirements()}
    assert names.isdisjoint({"torch", "openai-whisper"})


def test_lock_setup_and_project_name_the_same_upper_python() -> None:
    environments = PROJECT["tool"]["uv"]["environments"]
    assert all("python_full_version < '3.15'" in line for line in environments)
    assert "PYTHON_BELOW=3.15 " in (ROOT / "bin/lock").read_text(encoding="utf-8")
    assert "python_below=3.15\n" in (ROOT / "bin/setup").read_text(encoding="utf-8")


def test_every_console_script_of_the_project_resolves() -> None:
    installed = {
        entry.name: entry
        for entry in entry_points(group="console_scripts")
        if entry.dist is not None and entry.dist.name == "reprise-engine"
    }
    assert sorted(installed) == ["reprise"]
    assert callable(installed["reprise"].load())


def test_every_room_is_in_the_wheel_and_under_the_import_contracts() -> None:
    rooms = sorted(
        path.parent.name
        for path in ROOT.glob("*/__init__.py")
        if path.parent.name not in {"bench", "tests"}
    )
    assert rooms == ["apps", "io_managers", "pipelines", "reprise", "resources"]
    assert PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"] == [
        *rooms,
        "workflows",
    ]
    assert PROJECT["tool"]["importlinter"]["root_packages"] == rooms


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_are_executable_parse_and_stop_at_an_error(script: str) -> None:
    path = ROOT / script
    text = path.read_text(encoding="utf-8")
    assert os.access(path, os.X_OK)
    assert text.startswith("#!/usr/bin/env bash\n")
    assert "\nset -euo pipefail\n" in text
    assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0


def test_a_set_up_clone_is_recognised_without_running_an_installer(tmp_path: Path) -> None:
    """With a PATH that holds no uv and a Python that would fail, nothing but the stamp is asked."""
    done = subprocess.run(
        [str(ROOT / "bin/setup")],
        cwd=tmp_path,
        env={"PATH": os.defpath, "PYTHON": "false"},
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def set_up_empty_clone(folder: Path, interpreter: str) -> subprocess.CompletedProcess[str]:
    """Run bin/setup where no environment is, with a shell script for an interpreter, without uv."""
    (folder / "clone/bin").mkdir(parents=True)
    for name in ("bin/setup", "requirements.lock", "pyproject.toml"):
        (folder / "clone" / name).write_bytes((ROOT / name).read_bytes())
    python = folder / "python-of-the-test"
    python.write_text(f"#!/bin/sh\n{interpreter}\n", encoding="utf-8")
    python.chmod(0o755)
    return subprocess.run(
        ["bash", str(folder / "clone/bin/setup")],
        env={"PATH": os.defpath, "PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )


def test_an_interpreter_that_is_too_old_or_too_new_is_refused_by_name(tmp_path: Path) -> None:
    done = set_up_empty_clone(tmp_path, "case $2 in *print*) echo 3.10;; *) exit 1;; esac")
    assert done.returncode == 1
    assert "no Python from 3.11 to below 3.15; found:" in done.stderr
    assert "python-of-the-test is 3.10" in done.stderr
    assert not (tmp_path / "clone/.venv").exists()


def test_without_ensurepip_the_package_to_install_is_named(tmp_path: Path) -> None:
    done = set_up_empty_clone(tmp_path, "case $2 in *ensurepip*) exit 1;; *) echo 3.11;; esac")
    assert done.returncode == 1
    assert "its module venv or ensurepip is missing" in done.stderr
    assert "apt-get install python3-venv" in done.stderr
    assert not (tmp_path / "clone/.venv/locked.stamp").exists()


def test_a_set_up_that_did_not_finish_is_started_over(tmp_path: Path) -> None:
    left_over = tmp_path / "clone/.venv/lib/half-installed"
    left_over.mkdir(parents=True)
    (tmp_path / "clone/.venv/incomplete").touch()
    done = set_up_empty_clone(tmp_path, "case $2 in *ensurepip*) exit 1;; *) echo 3.11;; esac")
    assert "unfinished, broken or was moved; starting over" in done.stderr
    assert not left_over.exists()
