"""Small Remotion projects for tests, and the template with its packages installed.

template = installed_template(folder)                  # npm ci; needs Node and npm
tree = remotion_project(folder, body="<AbsoluteFill/>") # one composition, `Film`, 320x180
left_over(folder)                                      # processes that still know the folder
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

TEMPLATE = Path(__file__).parents[1] / "workflows" / "templates" / "motion-titles"
INSTALL_SECONDS = 300.0

_ROOT = """\
import React from "react";
import {AbsoluteFill, Composition, Img, continueRender, delayRender, registerRoot, staticFile,
  useCurrentFrame} from "remotion";
%(head)s

const Film: React.FC<Record<string, unknown>> = (props) => {
  const frame = useCurrentFrame();
  %(code)s
  return (%(body)s);
};

registerRoot(() => (
  <Composition id="Film" component={Film} durationInFrames={%(frames)d} fps={%(rate)s}
    width={%(width)d} height={%(height)d} />
));
"""


def installed_template(folder: Path) -> Path:
    """Copy the template into a folder and install its packages there, as a user does."""
    target = folder / "template"
    shutil.copytree(TEMPLATE, target, ignore=shutil.ignore_patterns("node_modules"))
    done = subprocess.run(
        ["npm", "ci", "--no-audit", "--no-fund"],
        cwd=target,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return target


def remotion_project(
    folder: Path,
    *,
    head: str = "",
    code: str = "",
    body: str = '<AbsoluteFill style={{backgroundColor: "#808080"}} />',
    files: Mapping[str, str | bytes] | None = None,
    frames: int = 3,
    rate: str = "30",
    size: tuple[int, int] = (320, 180),
) -> Path:
    """Write a project with the one composition `Film`; returns its folder."""
    tree = folder / "tree"
    facts = {"head": head, "code": code, "body": body, "frames": frames, "rate": rate}
    text = _ROOT % {**facts, "width": size[0], "height": size[1]}
    for name, content in {"src/index.tsx": text, **(files or {})}.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return tree


def left_over(folder: Path) -> list[str]:
    """Return the processes whose command line or environment names the folder."""
    wanted, found = os.fsencode(folder), []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes()
                if wanted in words or wanted in (entry / "environ").read_bytes():
                    found.append(f"{entry.name} {words[:200]!r}")
            except OSError:
                continue
    return found
