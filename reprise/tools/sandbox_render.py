"""Tool of the group SandboxRender: a film of a Remotion composition of the sandbox.

What has to be installed, what is wrong with the composition, and what it took too much of, all come
back as a refusal with a code; so an agent can mend it or go on without.

Source: specification E, V14. Tests: tests/unit/tools/test_sandbox_render.py.
"""

from pydantic import Field, JsonValue

from reprise.errors import BadInput, SandboxRefused, ToolFailed
from reprise.model.sandbox import CompositionRequest
from reprise.tools.access import SandboxDoor
from reprise.tools.argument_schema import Arguments
from reprise.tools.sandbox_tool import sandbox_tool
from reprise.tools.tool import Result, refusal

NO_RENDERER = "no_renderer"
"""Nothing can be rendered here: the workflow names no template."""

CANNOT_RENDER = "cannot_render"
"""The request cannot be met: something is not installed, or there is no such composition."""

RENDER_FAILED = "render_failed"
"""The composition does not build or draw, or takes more than it may."""

ID_CHARS_MAX = 200
ERROR_CHARS_MAX = 4_000


class RenderArguments(Arguments):
    """Arguments of RenderComposition."""

    id: str = Field(min_length=1, max_length=ID_CHARS_MAX)
    """Id of the composition, such as `TitleCard`."""
    input_props: dict[str, JsonValue] = Field(default_factory=dict)
    """Props that go before the composition's own, for this film alone."""
    start_frame: int | None = Field(default=None, ge=0)
    """First frame, from 0; left out: from the beginning."""
    end_frame: int | None = Field(default=None, ge=0)
    """Last frame, included; left out: to the end. A few frames are enough for a look."""


def render_composition(arguments: RenderArguments, door: SandboxDoor) -> Result:
    """Render the files as they are now."""
    if door.render is None:
        return refusal(
            NO_RENDERER,
            "nothing can be rendered here: the workflow has to name a template, as in "
            "`sandbox: {template: motion-titles}`; go on without a film",
        )
    request = CompositionRequest(
        composition_id=arguments.id,
        input_props=arguments.input_props,
        start_frame=arguments.start_frame,
        end_frame=arguments.end_frame,
    )
    try:
        artifact, film = door.render(request)
    except SandboxRefused:
        raise
    except BadInput as error:
        return refusal(CANNOT_RENDER, str(error)[:ERROR_CHARS_MAX])
    except ToolFailed as error:
        return refusal(RENDER_FAILED, str(error)[:ERROR_CHARS_MAX])
    door.rendered.append(artifact)
    return {
        "ok": True,
        "storageKey": artifact.storage_key,
        "width": film.width,
        "height": film.height,
        "frameCount": film.frame_count,
        "durationSeconds": round(film.duration_seconds, 3),
        "sizeBytes": artifact.size_bytes,
    }


TOOLS = (
    sandbox_tool(
        "RenderComposition",
        (
            "Render a Remotion composition of the sandbox, as its files are now, to a film without "
            "sound (H.264) that is kept with the step. Takes seconds to minutes: render a few "
            "frames to see whether it builds, and the whole once it does."
        ),
        RenderArguments,
        render_composition,
        "1",
    ),
)
"""The group's tools."""
