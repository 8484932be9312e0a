"""A look at a step's output: tables that show at once, pictures and texts a click away.

Pictures go inline as data URIs, small ones only: they live in Dagster's event log. The UI shows
tables as they are, and Markdown and JSON behind a button; it strips raw HTML.

Source: specification D8; research, what the web UI shows.
"""

import base64
import io
import logging
from collections.abc import Mapping, Sequence

from dagster import MetadataValue, TableRecord
from dagster._core.definitions.metadata import RawMetadataValue
from PIL import Image
from pydantic import JsonValue, ValidationError

from reprise.canonical import canonical_json
from reprise.errors import StoreError
from reprise.model.edit import EditDecision
from reprise.model.media import SourceAnalysis, VideoAnalysis
from reprise.model.workflow import StepType
from reprise.ports import ObjectStore

logger = logging.getLogger(__name__)

PREVIEW_CHARS_MAX = 60_000
SOURCES_MAX = 4
"""Sources with pictures; all are in the table."""
SENTENCES_MAX = 8
SENTENCE_CHARS_MAX = 160
SHEET_BYTES_MAX = 40_000
"""All contact sheets of a preview together, before base64 makes them a third larger."""
SHEET_COLUMNS = 4
SHEET_PICTURES_MAX = 8
TILE_SIZES = ((240, 135), (160, 90))
QUALITIES = (75, 60, 45)


def preview(
    step_type: StepType | None, output: JsonValue, objects: ObjectStore
) -> Mapping[str, RawMetadataValue]:
    """Return what there is to look at, by name; the same for a hit and a fresh result."""
    try:
        if step_type is StepType.VIDEO_ANALYZE:
            return _analysis(VideoAnalysis.model_validate(output), objects)
        if step_type is StepType.EDIT_ROOM:
            return _edit(EditDecision.model_validate(output))
        if step_type is StepType.VIDEO_COMPILE and isinstance(output, dict):
            return {"film": MetadataValue.table([_film(output)])}
    except (ValidationError, StoreError) as error:
        logger.warning("no preview: %s", error)
    return _answer(output)


def _answer(output: JsonValue) -> Mapping[str, RawMetadataValue]:
    if isinstance(output, str):
        text = output if len(output) <= PREVIEW_CHARS_MAX else f"{output[:PREVIEW_CHARS_MAX]}…"
        return {"answer": MetadataValue.md(text)} if text else {}
    if output is None or len(canonical_json(output)) > PREVIEW_CHARS_MAX:
        return {}
    if isinstance(output, list | dict):
        return {"answer": MetadataValue.json(output)}
    return {"answer": MetadataValue.text(str(output))}


def _analysis(analysis: VideoAnalysis, objects: ObjectStore) -> Mapping[str, RawMetadataValue]:
    if not analysis.sources:
        return {}
    return {
        "footage": MetadataValue.table([_source(source) for source in analysis.sources]),
        "preview": MetadataValue.md(_look(analysis.sources[:SOURCES_MAX], objects)),
    }


def _source(source: SourceAnalysis) -> TableRecord:
    sentences = source.transcript.sentences if source.transcript is not None else ()
    loudness = source.loudness.integrated_lufs if source.loudness is not None else None
    return TableRecord(
        {
            "id": source.id,
            "source": source.name,
            "seconds": round(source.duration_seconds, 2),
            "size": f"{source.width}x{source.height}",
            "shots": len(source.shots),
            "sentences": len(sentences),
            "LUFS": "none" if loudness is None else round(loudness, 1),
        }
    )


def _look(sources: Sequence[SourceAnalysis], objects: ObjectStore) -> str:
    parts: list[str] = []
    left = SHEET_BYTES_MAX
    for place, source in enumerate(sources):
        parts.append(f"**{source.name}**")
        keys = [shot.thumbnail_storage_key for shot in source.shots]
        sheet = contact_sheet(
            [objects.get_bytes(key) for key in spread(keys) if objects.head(key) is not None],
            # What a source does not need is the next one's.
            size_bytes_max=left // (len(sources) - place),
        )
        left -= len(sheet)
        if sheet:
            data = base64.b64encode(sheet).decode()
            parts.append(f"![shots of {source.name}](data:image/jpeg;base64,{data})")
        sentences = source.transcript.sentences if source.transcript is not None else ()
        parts += [
            f"> {item.start_seconds:.1f} s: {item.text[:SENTENCE_CHARS_MAX]}"
            for item in sentences[:SENTENCES_MAX]
        ]
    return "\n\n".join(parts)


def spread(keys: Sequence[str | None]) -> list[str]:
    """Return up to `SHEET_PICTURES_MAX` of the keys, evenly over all of them."""
    present = [key for key in keys if key is not None]
    count = min(len(present), SHEET_PICTURES_MAX)
    return [present[place * len(present) // count] for place in range(count)]


def contact_sheet(pictures: Sequence[bytes], *, size_bytes_max: int) -> bytes:
    """Return the pictures side by side as one JPEG, or nothing where none fits.

    Args:
        pictures: Encoded pictures; one that cannot be read is left out.
        size_bytes_max: Limit of the JPEG; coarser and smaller ones are tried until one is within.
    """
    for size in TILE_SIZES:
        tiles = [tile for tile in (_tile(each, size) for each in pictures) if tile is not None]
        if not tiles:
            return b""
        sheet = _side_by_side(tiles, size)
        for quality in QUALITIES:
            stream = io.BytesIO()
            sheet.save(stream, "JPEG", quality=quality)
            if stream.tell() <= size_bytes_max:
                return stream.getvalue()
    return b""


def _tile(picture: bytes, size: tuple[int, int]) -> Image.Image | None:
    try:
        with Image.open(io.BytesIO(picture)) as opened:
            tile = opened.convert("RGB")
    except (OSError, ValueError, Image.DecompressionBombError):
        return None
    tile.thumbnail(size)
    return tile


def _side_by_side(tiles: Sequence[Image.Image], size: tuple[int, int]) -> Image.Image:
    width, height = size
    columns = min(SHEET_COLUMNS, len(tiles))
    sheet = Image.new("RGB", (columns * width, -(-len(tiles) // columns) * height))
    for place, tile in enumerate(tiles):
        row, column = divmod(place, columns)
        # Centred: an upright picture keeps its shape.
        left = column * width + (width - tile.width) // 2
        sheet.paste(tile, (left, row * height + (height - tile.height) // 2))
    return sheet


def _edit(decision: EditDecision) -> Mapping[str, RawMetadataValue]:
    rate = decision.rate
    rows: list[TableRecord] = []
    film_seconds = 0.0
    for cut in decision.cuts:
        start, end = float(cut.start_frame / rate), float(cut.end_frame / rate)
        rows.append(
            TableRecord(
                {
                    "cut": cut.id,
                    "in film": round(film_seconds, 2),
                    "source": cut.source_id,
                    "from": round(start, 2),
                    "to": round(end, 2),
                    "seconds": round(end - start, 2),
                    "why": cut.reason,
                }
            )
        )
        film_seconds += end - start
    return {
        "title": MetadataValue.text(decision.title),
        "edit": MetadataValue.table(rows),
        "answer": MetadataValue.json(decision.model_dump(mode="json")),
    }


def _film(output: Mapping[str, JsonValue]) -> TableRecord:
    def number(name: str) -> str | int | float:
        value = output.get(name)
        return round(value, 2) if isinstance(value, int | float) else "none"

    return TableRecord(
        {
            "title": str(output.get("title") or "none"),
            "seconds": number("duration_seconds"),
            "frames": number("frame_count"),
            "cuts": number("cuts"),
            "captions": number("captions"),
            "LUFS": number("loudness_lufs"),
        }
    )
