"""A look at a step's output as Markdown: key frames and transcript, or the edit as a table.

Pictures go inline as data URIs, small ones only: they live in Dagster's event log.

Source: specification D8; research: the UI shows data URIs in Markdown and strips raw HTML.
"""

import base64
import logging

from pydantic import JsonValue, ValidationError

from reprise.errors import StoreError
from reprise.model.edit import EditDecision
from reprise.model.media import VideoAnalysis
from reprise.model.workflow import StepType
from reprise.ports import ObjectStore

logger = logging.getLogger(__name__)

PICTURES_MAX = 4
PICTURE_BYTES_MAX = 14_000
SENTENCES_MAX = 6


def preview(step_type: StepType | None, output: JsonValue, objects: ObjectStore) -> str:
    """Return Markdown to look at, or an empty text where there is nothing to show."""
    try:
        if step_type is StepType.VIDEO_ANALYZE:
            return _analysis(VideoAnalysis.model_validate(output), objects)
        if step_type is StepType.EDIT_ROOM:
            return _edit(EditDecision.model_validate(output))
    except (ValidationError, StoreError) as error:
        logger.warning("no preview: %s", error)
    return ""


def _analysis(analysis: VideoAnalysis, objects: ObjectStore) -> str:
    parts: list[str] = []
    for source in analysis.sources:
        parts.append(
            f"**{source.name}**: {source.duration_seconds:.1f} s, {source.width}x{source.height},"
            f" {len(source.shots)} shots"
        )
        pictures = _pictures([shot.thumbnail_storage_key for shot in source.shots], objects)
        if pictures:
            parts.append(" ".join(pictures))
        sentences = source.transcript.sentences if source.transcript is not None else ()
        parts += [
            f"> {item.start_seconds:.1f} s: {item.text}" for item in sentences[:SENTENCES_MAX]
        ]
    return "\n\n".join(parts)


def _pictures(keys: list[str | None], objects: ObjectStore) -> list[str]:
    present = [key for key in keys if key is not None]
    step = max(1, len(present) // PICTURES_MAX)
    pictures: list[str] = []
    for key in present[::step][:PICTURES_MAX]:
        info = objects.head(key)
        if info is None or info.size_bytes > PICTURE_BYTES_MAX:
            continue
        data = base64.b64encode(objects.get_bytes(key)).decode()
        pictures.append(f"![shot](data:image/jpeg;base64,{data})")
    return pictures


def _edit(decision: EditDecision) -> str:
    rate = decision.rate
    rows = ["| cut | source | from | to | seconds | why |", "| --- | --- | --- | --- | --- | --- |"]
    for cut in decision.cuts:
        start, end = float(cut.start_frame / rate), float(cut.end_frame / rate)
        why = cut.reason.replace("|", "/").replace("\n", " ")
        rows.append(
            f"| {cut.id} | {cut.source_id} | {start:.2f} | {end:.2f} | {end - start:.2f} | {why} |"
        )
    return f"**{decision.title}**\n\n" + "\n".join(rows)
