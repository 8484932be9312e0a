"""`quick-win-promo` from start to end on a real model: the commands of docs/guide/local-model.md.

The model is started as the page says, with the settings of the page. Footage and answers are
shorter than there, so that it takes minutes on one core. What the model says does not matter: facts
of protocol are looked at, and the film.
"""

import faulthandler
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import jsonschema
import pytest
import yaml

from reprise.agents.answer_schema import answer_schema
from reprise.model.conversation import PriorOutput
from resources.definition_files import load_definitions
from tests.acceptance.docs_reader import blocks
from tests.acceptance.film_measures import ffmpeg_says
from tests.acceptance.promo_run import ROOT, SAMPLE, STEPS, PromoHome, PromoRun
from tests.local_model import die_with_parent
from tests.media_files import make_media

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "guide" / "local-model.md"
PAGE_ADDRESS = "http://127.0.0.1:8080/v1"
ANALYSTS = ("content", "audience", "brand", "hook", "visual")
AGENT_STEPS = {*ANALYSTS, "edit_room"}
FOOTAGE_SECONDS = 27
SECONDS_MAX = 1800.0
"""Longest run; the machine may be busy with other things."""
ITEMS_MAX, CHARS_MAX, TOKENS_MAX = 2, 50, 700
"""A list, a text and an answer of an agent hold at most so much here."""


@dataclass(frozen=True)
class LocalPromo:
    """A promo that a local model made, and the run after it."""

    run: PromoRun
    again: PromoRun
    folder: Path
    workflows: Path

    def output(self, label: str) -> Any:
        """The output of a step."""
        (path,) = self.folder.glob(f"s??_{label}.json")
        return json.loads(path.read_text("utf-8"))


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The model's address, started as the page says but on a free port."""
    (start,) = [b for b in blocks(PAGE) if "serves for ever" in (b.left_out or "")]
    assert start.text == ".venv/bin/python examples/local_model.py\n"
    command = [sys.executable, "examples/local_model.py", "--port", "0"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=die_with_parent,
    ) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.kill()


@pytest.fixture(scope="module")
def promo(address: str, tmp_path_factory: pytest.TempPathFactory) -> LocalPromo:
    # On a busy machine this takes longer than pytest lets a test hang; `SECONDS_MAX` bounds it.
    faulthandler.cancel_dump_traceback_later()
    root = tmp_path_factory.mktemp("local")
    home = PromoHome(
        root,
        workflows=short_answers(root),
        settings=page_settings(address),
        seconds_max=SECONDS_MAX,
    )
    talk = make_media(
        root / "talk.mp4", "-i", str(SAMPLE / "open-film-talk.mp4"), "-t", str(FOOTAGE_SECONDS),
        "-c", "copy",
    )  # fmt: skip
    home.add("talk", talk, SAMPLE / "brief.md")
    run = home.run("talk", "--provider", "local")
    folder = home.results("talk", root / "out")
    again = home.run("talk", "--provider", "local")
    return LocalPromo(run, again, folder, home.workflows)


def page_settings(address: str) -> dict[str, str]:
    """Return the settings that the page exports, for this address and a slow machine."""
    exported = re.findall(r"^export (REPRISE_\w+)=(\S+)$", PAGE.read_text("utf-8"), re.MULTILINE)
    settings = {name: value.replace(PAGE_ADDRESS, address) for name, value in exported}
    assert settings["REPRISE_PROVIDERS__LOCAL__BASE_URL"] == address
    slow = {
        "REPRISE_AGENTS__CALL_SECONDS_MAX": str(SECONDS_MAX),
        "REPRISE_AGENTS__SECONDS_MAX": str(SECONDS_MAX),
        "REPRISE_PROVIDERS__LOCAL__TIMEOUT_SECONDS": str(SECONDS_MAX),
    }
    return {**settings, **slow}


def short_answers(root: Path) -> Path:
    """Return a copy of the workflows whose agents answer in fewer words."""
    for source in [*(ROOT / "workflows").glob("*.yaml"), *(ROOT / "workflows").glob("*/*.md")]:
        target = root / source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text("utf-8")
        if source.parent.name == "prompts":
            _, front, prompt = text.split("---\n", 2)
            head = yaml.safe_load(front)
            head["output_schema"] = shorter(head["output_schema"])
            head["parameters"]["max_output_tokens"] = TOKENS_MAX
            text = f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n{prompt}"
        target.write_text(text, encoding="utf-8")
    return root / "workflows"


def shorter(schema: Any) -> Any:
    if isinstance(schema, list):
        return [shorter(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    most = {"maxItems": ITEMS_MAX, "maxLength": CHARS_MAX}
    return {
        name: min(each, most[name]) if name in most else shorter(each)
        for name, each in schema.items()
    }


def test_every_agent_is_asked_and_its_tokens_are_counted(promo: LocalPromo) -> None:
    assert promo.run.executed == STEPS
    steps = promo.run.steps
    assert {label for label, step in steps.items() if step["tokens_used"] > 500} == AGENT_STEPS
    assert {steps[label]["model"] for label in AGENT_STEPS} == {"local"}


def test_every_answer_fits_its_schema_and_names_what_exists(promo: LocalPromo) -> None:
    analysis = promo.output("video_analyze")
    prior = [PriorOutput(order=1, label="a", type="VideoAnalyze", output=analysis)]
    agents = load_definitions(promo.workflows).agents
    for label in ANALYSTS:
        schema = answer_schema(agents[label].output_schema, prior)
        assert schema is not None
        jsonschema.Draft202012Validator(schema).validate(promo.output(label))


def test_the_edit_is_of_real_sentences_and_shots(promo: LocalPromo) -> None:
    (source,) = promo.output("video_analyze")["sources"]
    shots = {shot["id"] for shot in source["shots"]}
    sentences = {each["id"] for each in source["transcript"]["sentences"]}
    decision = promo.output("edit_room")
    assert decision["title"]
    assert len(decision["cuts"]) >= 2
    for cut in decision["cuts"]:
        assert set(cut["shot_ids"]) <= shots
        assert set(cut["sentence_ids"]) <= sentences
        assert 0 <= cut["start_frame"] < cut["end_frame"] <= source["frame_count"]


def test_the_film_can_be_played(promo: LocalPromo) -> None:
    film = promo.folder / "film.mp4"
    frames = frame_count(promo.output("edit_room"))
    with av.open(str(film)) as container:
        picture, sound = container.streams.video[0], container.streams.audio[0]
        assert (picture.codec_context.name, sound.codec_context.name) == ("h264", "aac")
        assert sum(1 for _ in container.decode(picture)) == frames
    assert 5 < frames / 24 <= FOOTAGE_SECONDS / 2 + 0.1
    said = ffmpeg_says(film, "-vf", "blackdetect=d=0.7", "-af", "ebur128=peak=true:framelog=quiet")
    assert "black_start" not in said
    (loudness,) = re.findall(r"I:\s+(-?[\d.]+) LUFS", said)
    assert float(loudness) == pytest.approx(-14, abs=1.0)


def frame_count(decision: Mapping[str, Any]) -> int:
    return sum(cut["end_frame"] - cut["start_frame"] for cut in decision["cuts"])


def test_the_second_run_asks_nobody(promo: LocalPromo) -> None:
    assert promo.again.executed == set()
    assert promo.again.ffmpeg_count == 0
    assert {step["tokens_used"] for step in promo.again.steps.values()} == {0}
