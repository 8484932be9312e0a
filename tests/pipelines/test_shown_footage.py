"""What agents are shown of footage, and what a small model's room leaves for its own talk."""

import json

import dagster as dg
import pytest

from tests.media_files import clip
from tests.pipelines.engine import Engine
from tests.pipelines.test_context_budget import Talker

LOOK = {"label": "look", "type": "VideoAnalyze", "video_analyze": {"speech": False}}
CHOICE = {"title": "Tones", "cuts": [{"sentence_ids": [], "shot_ids": ["v1.s001"], "reason": "x"}]}


@pytest.fixture
def talker(engine: Engine) -> Talker:
    engine.rule = Talker()
    material = engine.root / "material" / "p"
    material.mkdir(parents=True)
    clip(material / "tone.mp4", seconds=4.0)
    engine.project("p")
    for name in ("writer", "editor", "critic", "alone"):
        engine.agent(name, "You work.")
    engine.agent("decider", "You work.", output_schema_name="choice", output_schema={})
    engine.rule.says["decider"] = json.dumps(CHOICE)
    return engine.rule


def test_prompts_show_shots_in_lines_and_the_room_cuts_by_frames(
    engine: Engine, talker: Talker
) -> None:
    engine.workflow(
        [LOOK, {"label": "room", "type": "EditRoom", "edit_room": {"agents": ["decider"]}}]
    )
    run = engine.run()
    assert run.status is dg.DagsterRunStatus.SUCCESS, engine.failures
    assert talker.shown["decider"].startswith(
        "# Input\n\n## Step 1: look\n### v1: tone.mp4\n4.0 s, 320x180; "
    )
    assert "\nv1.s001 | 0.0 | 4.0 | " in talker.shown["decider"]
    assert "start_frame" not in talker.shown["decider"]
    (raw,) = talker.inputs["decider"].prior
    assert isinstance(raw.output, dict)
    assert "storage_key" in json.dumps(raw.output)


def test_a_small_models_room_has_space_for_what_its_speakers_say(
    engine: Engine, talker: Talker
) -> None:
    talker.tokens = 4096
    room = {"agents": ["editor", "critic", "decider"]}
    engine.workflow(
        [
            LOOK,
            {"label": "write", "type": "Agent", "agent": "writer"},
            {"label": "again", "type": "Agent", "agent": "alone"},
            {"label": "single", "type": "EditRoom", "edit_room": {"agents": ["decider"]}},
            {"label": "room", "type": "EditRoom", "edit_room": room},
        ]
    )
    run = engine.run()
    assert run.status is dg.DagsterRunStatus.SUCCESS, engine.failures
    records = engine.records(run)
    single, several = records["single"].context_budget, records["room"].context_budget
    assert single is not None
    assert several is not None
    # A quarter of 4,096 tokens, at three characters each.
    assert single.settings.max_input_chars - several.settings.max_input_chars == 3072
