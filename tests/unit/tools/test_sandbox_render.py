"""RenderComposition: what a model is answered."""

import json
from typing import Any

import pytest

from reprise.errors import BadInput, Cancelled, StoreError, ToolFailed
from reprise.model.agent import ToolGroup
from reprise.model.result import Artifact
from reprise.model.sandbox import CompositionRequest, RenderedComposition
from reprise.tools.access import SandboxDoor, ToolAccess
from reprise.tools.toolbox import Toolbox
from resources.memory_sandbox import MemorySandbox

FILM = RenderedComposition(
    file_name="Film.mp4",
    width=320,
    height=180,
    frame_count=15,
    duration_seconds=0.5005,
    versions={"remotion": "4.0.527"},
)
KEPT = Artifact(name="Film.mp4", storage_key="projects/p/Film.mp4", size_bytes=7, etag="e")


class Cinema:
    """Keeps what was asked, and answers or raises."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[CompositionRequest] = []
        self.error = error
        self.door = SandboxDoor(MemorySandbox(), self.render)

    def render(self, request: CompositionRequest) -> tuple[Artifact, RenderedComposition]:
        self.asked.append(request)
        if self.error is not None:
            raise self.error
        return KEPT, FILM


def call(door: SandboxDoor, **arguments: object) -> dict[str, Any]:
    box = Toolbox({ToolGroup.SANDBOX_RENDER}, ToolAccess(sandbox=door))
    answer: dict[str, Any] = json.loads(box.run("RenderComposition", json.dumps(arguments)))
    return answer


def test_a_film_is_told_by_its_key_and_listed() -> None:
    cinema = Cinema()
    answer = call(cinema.door, id="Film", inputProps={"a": [1]}, startFrame=2, endFrame=16)
    assert answer == {
        "ok": True,
        "storageKey": "projects/p/Film.mp4",
        "width": 320,
        "height": 180,
        "frameCount": 15,
        "durationSeconds": 0.5,
        "sizeBytes": 7,
    }
    assert cinema.door.rendered == [KEPT]
    assert cinema.asked == [
        CompositionRequest(
            composition_id="Film", input_props={"a": [1]}, start_frame=2, end_frame=16
        )
    ]


@pytest.mark.parametrize(
    ("error", "code"),
    [(BadInput("run `npm ci`"), "cannot_render"), (ToolFailed("src/a.tsx:3"), "render_failed")],
    ids=["not installed", "does not build"],
)
def test_what_is_wrong_is_answered_with_a_code(error: Exception, code: str) -> None:
    cinema = Cinema(error)
    assert call(cinema.door, id="Film") == {"ok": False, "code": code, "error": str(error)}
    assert cinema.door.rendered == []


@pytest.mark.parametrize("error", [Cancelled("stopped"), StoreError("gone")])
def test_a_stop_and_a_broken_store_go_up(error: Exception) -> None:
    with pytest.raises(type(error)):
        call(Cinema(error).door, id="Film")


def test_without_a_template_nothing_is_rendered() -> None:
    answer = call(SandboxDoor(MemorySandbox()), id="Film")
    assert (answer["ok"], answer["code"]) == (False, "no_renderer")


@pytest.mark.parametrize(
    "arguments",
    [{}, {"id": ""}, {"id": "Film", "startFrame": -1}, {"id": "Film", "inputProps": "x"}],
)
def test_arguments_that_do_not_fit_render_nothing(arguments: dict[str, object]) -> None:
    cinema = Cinema()
    assert call(cinema.door, **arguments)["ok"] is False
    assert cinema.asked == []
