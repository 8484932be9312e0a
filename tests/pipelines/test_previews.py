"""What a step shows in the UI, and that it stays small: it lives in Dagster's event log."""

import io

from dagster import MetadataValue, TableMetadataValue
from PIL import Image
from pydantic import JsonValue

from pipelines.previews import PREVIEW_CHARS_MAX, contact_sheet, preview, spread
from reprise.model.workflow import StepType
from resources.memory_object_store import MemoryObjectStore


def picture(width: int, height: int, seed: int = 0) -> bytes:
    """Return a JPEG of noise, which compresses badly."""
    noise = Image.effect_noise((width, height), 80.0 + seed).convert("RGB")
    stream = io.BytesIO()
    noise.save(stream, "JPEG", quality=90)
    return stream.getvalue()


def test_a_contact_sheet_stays_within_its_bytes() -> None:
    sheet = contact_sheet([picture(320, 180, seed) for seed in range(8)], size_bytes_max=60_000)
    assert 0 < len(sheet) <= 60_000
    with Image.open(io.BytesIO(sheet)) as opened:
        assert opened.size == (640, 180)


def test_a_contact_sheet_that_cannot_fit_is_left_out() -> None:
    assert contact_sheet([picture(320, 180)], size_bytes_max=500) == b""


def test_an_upright_picture_keeps_its_shape() -> None:
    white = Image.new("RGB", (180, 320), "white")
    stream = io.BytesIO()
    white.save(stream, "PNG")
    sheet = contact_sheet([stream.getvalue()], size_bytes_max=60_000)
    with Image.open(io.BytesIO(sheet)) as opened:
        line = opened.convert("L").crop((0, 67, 240, 68)).tobytes()
        bright = [value for value in line if value > 128]
    # 135 lines of a 180x320 picture are 76 wide.
    assert abs(len(bright) - 76) <= 2


def test_a_damaged_picture_is_left_out() -> None:
    assert contact_sheet([b"no picture"], size_bytes_max=60_000) == b""


def test_pictures_are_chosen_evenly() -> None:
    keys = [f"k{place}" for place in range(16)]
    assert spread([None, *keys]) == ["k0", "k2", "k4", "k6", "k8", "k10", "k12", "k14"]
    assert spread(["a", None, "b"]) == ["a", "b"]


def test_an_edit_is_a_table_with_a_row_for_each_cut() -> None:
    cut: dict[str, JsonValue] = {
        "source_id": "v1",
        "reason": "the opening | line",
        "start_frame": 25,
        "end_frame": 75,
    }
    decision: JsonValue = {
        "title": "Come and see",
        "frame_rate": "25",
        "target_seconds": 20.0,
        "cuts": [{**cut, "id": "c1"}, {**cut, "id": "c2", "start_frame": 100, "end_frame": 150}],
    }
    shown = preview(StepType.EDIT_ROOM, decision, MemoryObjectStore())
    assert shown["title"] == MetadataValue.text("Come and see")
    table = shown["edit"]
    assert isinstance(table, TableMetadataValue)
    assert [record.data for record in table.records] == [
        {
            "cut": "c1",
            "in film": 0.0,
            "source": "v1",
            "from": 1.0,
            "to": 3.0,
            "seconds": 2.0,
            "why": "the opening | line",
        },
        {
            "cut": "c2",
            "in film": 2.0,
            "source": "v1",
            "from": 4.0,
            "to": 6.0,
            "seconds": 2.0,
            "why": "the opening | line",
        },
    ]


def test_an_agents_answer_is_shown_as_json() -> None:
    shown = preview(StepType.AGENT, {"tone": "warm"}, MemoryObjectStore())
    assert shown == {"answer": MetadataValue.json({"tone": "warm"})}


def test_an_answer_that_is_too_long_is_cut_or_left_out() -> None:
    text = preview(StepType.AGENT, "x" * (PREVIEW_CHARS_MAX + 1), MemoryObjectStore())
    assert text == {"answer": MetadataValue.md("x" * PREVIEW_CHARS_MAX + "…")}
    assert preview(StepType.AGENT, {"a": "x" * PREVIEW_CHARS_MAX}, MemoryObjectStore()) == {}


def test_an_output_of_another_form_is_shown_as_it_is() -> None:
    shown = preview(StepType.EDIT_ROOM, {"odd": 1}, MemoryObjectStore())
    assert shown == {"answer": MetadataValue.json({"odd": 1})}
