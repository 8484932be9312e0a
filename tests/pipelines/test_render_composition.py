"""RenderComposition in a step: the film is kept, listed and shown."""

import json
import shutil
from pathlib import Path
from typing import Any

import av
import pytest
from pydantic import JsonValue

from reprise.model.conversation import ModelReply, ModelRequest, ToolCall
from reprise.model.result import CacheReason, StepRecord, Usage
from reprise.ports import Cancelled
from resources.scripted_provider import ScriptedProvider, ScriptItem
from tests.pipelines.engine import Engine
from tests.remotion_project import TEMPLATE

USAGE = Usage(input_uncached=10, output=5, calls=1)


def calls(name: str, **arguments: object) -> ModelReply:
    call = ToolCall(id="call_0", name=name, arguments=json.dumps(arguments))
    return ModelReply(
        text="", tool_calls=(call,), finish_reason="tool_calls", usage=USAGE, model="scripted-1"
    )


KEY = "the film's key"
"""Stands in a script for where the last film was kept, which nobody knows beforehand."""


class Director(ScriptedProvider):
    """Says where the film was kept that it has rendered."""

    def complete(self, request: ModelRequest, *, cancelled: Cancelled) -> ModelReply:
        reply = super().complete(request, cancelled=cancelled)
        if reply.text != KEY:
            return reply
        told = json.loads(request.messages[-1].content)
        return reply.model_copy(update={"text": told["storageKey"]})


@pytest.fixture
def studio(engine: Engine) -> Engine:
    groups = ["SandboxBrowse", "SandboxAuthoring", "SandboxRender"]
    engine.agent("director", "You direct.", tool_groups=groups)
    folder = engine.workflows / "templates" / "motion-titles"
    shutil.copytree(TEMPLATE, folder, ignore=shutil.ignore_patterns("node_modules"))
    step = {"label": "director", "type": "Agent", "agent": "director"}
    engine.workflow([step], sandbox={"template": "motion-titles"})
    engine.project("p")
    return engine


def play(engine: Engine, *script: ModelReply | str) -> tuple[StepRecord, list[dict[str, Any]]]:
    """Run it; returns the step's record and what its tools answered."""
    engine.scripted = provider = ScriptedProvider({"director": list(script)})
    run = engine.run("p")
    assert run.is_success, engine.failures
    last = provider.requests[-1]
    told = [json.loads(item.content) for item in last.messages if item.role == "tool"]
    return engine.records(run)["director"], told


def test_without_remotion_the_agent_is_told_what_to_install_and_goes_on(studio: Engine) -> None:
    record, told = play(studio, calls("RenderComposition", id="TitleCard"), "no film")
    assert (told[0]["ok"], told[0]["code"]) == (False, "cannot_render")
    assert "npm ci" in told[0]["error"] or "Rendering needs" in told[0]["error"]
    assert record.artifacts == ()


@pytest.mark.remotion
def test_the_film_of_the_files_as_they_are_now_is_kept_with_the_step(
    studio: Engine, remotion_template: Path
) -> None:
    packages = studio.workflows / "templates" / "motion-titles" / "node_modules"
    packages.symlink_to(remotion_template / "node_modules")
    record, told = play(
        studio,
        calls("EditSandboxFile", path="src/cards.ts", oldText="seconds: 3", newText="seconds: 0.2"),
        calls("RenderComposition", id="TitleCard"),
        "done",
    )
    assert told[1]["ok"], told
    assert (told[1]["frameCount"], told[1]["durationSeconds"]) == (5, 0.2)
    assert [film.name for film in record.artifacts] == ["TitleCard.mp4"]
    assert record.artifacts[0].storage_key == told[1]["storageKey"]
    path = studio.wiring.objects.local_path(told[1]["storageKey"])
    assert path is not None
    with av.open(str(path)) as container:
        assert sum(1 for _ in container.decode(video=0)) == 5


@pytest.mark.remotion
def test_on_a_warm_run_it_renders_again_and_what_follows_reads_of_this_runs_film(
    studio: Engine, remotion_template: Path
) -> None:
    packages = studio.workflows / "templates" / "motion-titles" / "node_modules"
    packages.symlink_to(remotion_template / "node_modules")
    studio.agent("reader", "You read.")
    director = {"label": "director", "type": "Agent", "agent": "director"}
    reader = {
        "label": "reader",
        "type": "Agent",
        "agent": "reader",
        "input_mode": "previous_step_only",
    }
    studio.workflow([director, reader], sandbox={"template": "motion-titles"})

    def played(seconds: str) -> tuple[dict[str, StepRecord], list[JsonValue]]:
        to = f"seconds: {seconds}"
        script: list[ScriptItem] = [
            calls("EditSandboxFile", path="src/cards.ts", oldText="seconds: 3", newText=to),
            calls("RenderComposition", id="TitleCard"),
            KEY,
        ]
        studio.scripted = provider = Director({"director": script, "reader": ["seen"]})
        run = studio.run("p")
        assert run.is_success, studio.failures
        asked = [each for each in provider.requests if each.agent.id == "reader"]
        return studio.records(run), [item.output for each in asked for item in each.inputs.prior]

    first, seen_first = played("0.2")
    other, seen_other = played("0.28")
    again, seen_again = played("0.28")

    films = [each["director"].artifacts[0].storage_key for each in (first, other, again)]
    assert films[0] != films[1] == films[2]
    assert seen_first == [films[0]]
    assert seen_other == [films[1]]
    assert seen_again == []
    told = [(each["director"].cache_reason, each["reader"].cache_reason) for each in (other, again)]
    assert told == [
        (CacheReason.POLICY, CacheReason.FIELD_CHANGED),
        (CacheReason.POLICY, CacheReason.HIT),
    ]
