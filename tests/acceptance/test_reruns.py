"""What runs again after a change, counted in steps and in ffmpeg processes.

Each run is a process of its own, so nothing is remembered but what was kept.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.acceptance.promo_run import ROOT, STEPS, PromoHome, PromoRun
from tests.media_files import scenes

SCENES = [
    *(("testsrc2", 5.0), ("mandelbrot", 6.0), ("testsrc2,hue=h=120", 7.0)),
    *(("mandelbrot,hue=h=60", 8.0), ("testsrc2,hue=h=200", 6.0)),
]


def footage(target: Path, parts: Sequence[tuple[str, float]] = SCENES) -> Path:
    return scenes(target, parts, size="192x108", sound="sine=f=330:r=48000,tremolo=f=3:d=0.8")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> PromoHome:
    """A home of its own, with its own copy of the workflows, and a project with a small film."""
    root = tmp_path_factory.mktemp("reruns")
    shutil.copytree(ROOT / "workflows", root / "workflows")
    made = PromoHome(root, workflows=root / "workflows")
    (root / "brief.md").write_text("# Moving patterns\n\nFor people who like colours.\n")
    made.add("tiny", footage(root / "patterns.mp4"), root / "brief.md")
    return made


@pytest.fixture(scope="module")
def first(home: PromoHome) -> PromoRun:
    """The first run of the small project."""
    return home.run("tiny")


@pytest.fixture
def settled(home: PromoHome, first: PromoRun) -> PromoHome:
    """The home with everything run as its files are now: each test ends with a run."""
    assert first.summary["status"] == "succeeded"
    return home


def test_footage_without_speech_gives_a_film_without_captions_that_says_so(
    home: PromoHome, first: PromoRun, tmp_path: Path
) -> None:
    results = home.results("tiny", tmp_path / "out")
    assert (results / "film.mp4").stat().st_size > 10_000
    assert not (results / "captions.srt").exists()
    assert first.steps["video_compile"]["notes"] == [
        "there is no speech in the chosen cuts, so the film has no captions"
    ]


def test_a_changed_prompt_runs_its_agent_and_nothing_that_would_see_the_same(
    settled: PromoHome,
) -> None:
    """The rules answer as before, so what reads the answer is not run again."""
    prompt = settled.workflows / "prompts" / "hook.md"
    prompt.write_text(prompt.read_text() + "\nPrefer short sentences.\n")
    again = settled.run("tiny")
    assert again.executed == {"hook"}
    assert again.ffmpeg_count == 0


def test_an_unrelated_file_does_not_run_the_analysis_again(
    settled: PromoHome, tmp_path: Path
) -> None:
    notes = tmp_path / "shopping.txt"
    notes.write_text("Milk, bread.\n")
    settled.add("tiny", notes)
    again = settled.run("tiny")
    assert again.steps["video_analyze"]["from_cache"]
    assert again.steps["video_compile"]["from_cache"]
    assert again.ffmpeg_count == 0


def test_a_film_that_is_gone_from_the_store_is_made_again_and_nothing_else(
    settled: PromoHome, first: PromoRun
) -> None:
    film = settled.objects / first.steps["video_compile"]["output_storage_key"]
    before = film.read_bytes()
    film.unlink()
    again = settled.run("tiny")
    assert again.executed == {"video_compile"}
    assert film.read_bytes() == before


def test_other_footage_gives_another_film(settled: PromoHome, tmp_path: Path) -> None:
    lengths = (7.0, 4.0, 9.0, 5.0, 7.0)
    parts = [(picture, length) for (picture, _), length in zip(SCENES, lengths, strict=True)]
    settled.add("other", footage(tmp_path / "patterns.mp4", parts), settled.root / "brief.md")
    assert settled.run("other").executed == STEPS
    cuts = []
    for project in ("tiny", "other"):
        results = settled.results(project, tmp_path / project)
        decision = json.loads((results / "s07_edit_room.json").read_text())
        cuts.append([(cut["start_frame"], cut["end_frame"]) for cut in decision["cuts"]])
    assert len(cuts[0]) >= 4
    assert len(cuts[1]) >= 4
    assert cuts[0] != cuts[1]
