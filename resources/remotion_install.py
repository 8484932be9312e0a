"""Finds what a composition is rendered with: Node, a browser, and a template's own Remotion.

Nothing of it comes with Reprise: Remotion is not open source, and its user installs it.

Source: specification V14.
"""

import functools
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reprise.errors import BadInput

NODE_MAJOR_MIN = 18
BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "chrome-headless-shell",
)
"""Names that a browser is looked for under, on PATH, in this order."""
NEEDED = ("remotion", "@remotion/bundler", "@remotion/renderer", "react", "react-dom")
"""Packages that a template has to name, each with one exact version."""
VERSION_SECONDS = 30.0
_VERSION = re.compile(r"\d+(\.\d+)+")


@dataclass(frozen=True)
class RemotionInstall:
    """What was found."""

    node: Path
    """Node's program."""
    browser: Path
    """The browser's program."""
    packages: Path
    """The template's `node_modules`, without links on the way."""
    versions: Mapping[str, str]
    """Program → version."""

    @property
    def chrome_mode(self) -> str:
        """How Remotion has to start the browser."""
        return "headless-shell" if "headless" in self.browser.name else "chrome-for-testing"


def find_install(template: Path, *, node: str | None, browser: str | None) -> RemotionInstall:
    """Return what a template's compositions are rendered with.

    Args:
        template: Folder where the user ran `npm ci`.
        node: Program, or its name on PATH; None looks for `node`.
        browser: Program, or its name on PATH; None looks for the usual names.

    Raises:
        BadInput: Something is missing or of another version; says what to install and where.
    """
    found_node = _program(
        (node,) if node else ("node",),
        f"Node.js {NODE_MAJOR_MIN} or newer",
        "REPRISE_SANDBOX__NODE",
    )
    found_browser = _program(
        (browser,) if browser else BROWSERS, "Chromium", "REPRISE_SANDBOX__CHROMIUM"
    )
    node_version = _version(found_node, "REPRISE_SANDBOX__NODE")
    if int(node_version.partition(".")[0]) < NODE_MAJOR_MIN:
        message = (
            f"Rendering needs Node.js {NODE_MAJOR_MIN} or newer and {str(found_node)!r} is "
            f"{node_version}: install a newer one, or name it in REPRISE_SANDBOX__NODE"
        )
        raise BadInput(message)
    packages = _packages(template)
    return RemotionInstall(
        node=found_node,
        browser=found_browser,
        packages=(template / "node_modules").resolve(),
        versions={
            **packages,
            "node": node_version,
            "chromium": _version(found_browser, "REPRISE_SANDBOX__CHROMIUM"),
        },
    )


def _program(names: tuple[str, ...], what: str, setting: str) -> Path:
    for name in names:
        found = shutil.which(name)
        if found is not None:
            return Path(found)
    message = (
        f"Rendering needs {what}, and there is no {' or '.join(map(repr, names))} on PATH: "
        f"install it, or name its program in {setting}"
    )
    raise BadInput(message)


def _version(program: Path, setting: str) -> str:
    """Return what a program says of its version."""
    try:
        return _said_version(str(program), program.stat().st_mtime_ns)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        message = f"{str(program)!r} does not tell its version ({error}); see {setting}"
        raise BadInput(message) from error


@functools.lru_cache(maxsize=16)
def _said_version(program: str, _modified_ns: int) -> str:
    done = subprocess.run(
        [program, "--version"],
        capture_output=True,
        check=True,
        # Nothing of this process's own: no key, and no option that Node would take for its own.
        env={"HOME": tempfile.gettempdir(), "LANG": "C.UTF-8", "PATH": os.defpath},
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=VERSION_SECONDS,
    )
    found = _VERSION.search(done.stdout)
    if found is None:
        message = "it answers something else"
        raise ValueError(message)
    return found.group()


def _packages(template: Path) -> dict[str, str]:
    """Return the versions of the packages that a template names, as they are installed."""
    install = f"run `npm ci` in the folder {str(template)!r}"
    try:
        wanted = json.loads((template / "package.json").read_bytes())["dependencies"]
        missing = [name for name in NEEDED if not isinstance(wanted[name], str)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = (
            f"The template {str(template)!r} has no `package.json` whose `dependencies` name "
            f"{', '.join(NEEDED)}: take the one that comes with Reprise"
        )
        raise BadInput(message) from error
    found: dict[str, str] = {}
    for name in NEEDED:
        try:
            package = json.loads((template / "node_modules" / name / "package.json").read_bytes())
            found[name] = str(package["version"])
        except (OSError, ValueError, KeyError, TypeError):
            missing.append(name)
    if missing:
        message = (
            f"Remotion is not installed ({', '.join(missing)} missing): {install}; its licence is "
            "free for individuals and companies of up to three people, see the README there"
        )
        raise BadInput(message)
    wrong = [f"{name} {found[name]}" for name in NEEDED if found[name] != wanted[name]]
    if wrong:
        message = f"The template's lock names other versions than {', '.join(wrong)}: {install}"
        raise BadInput(message)
    if len({found[name] for name in NEEDED if "remotion" in name}) > 1:
        message = f"Remotion's packages have to be of one version, in {str(template)!r}: {found}"
        raise BadInput(message)
    return found
