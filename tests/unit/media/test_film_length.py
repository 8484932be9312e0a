"""The wanted length, out of texts and earlier answers."""

import pytest

from reprise.media.film_length import LengthFrame, length_frame, seconds_in_text, wanted_seconds
from reprise.model.conversation import PriorOutput


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Make it 20 seconds long", 20.0),
        ("a 20s clip", 20.0),
        ("a 20-second promo", 20.0),
        ("20 to 30 seconds", 25.0),
        ("20–24 s", 22.0),
        ("about 12.5 sec", 12.5),
        ("half a minute", 30.0),
        ("a minute and a half", 90.0),
        ("twenty seconds", 20.0),
        ("1 minute", 60.0),
        ("for 30 people in 2026", None),
        ("", None),
    ],
)
def test_a_length_is_read_out_of_a_text(text: str, seconds: float | None) -> None:
    assert seconds_in_text(text) == seconds


def test_the_request_goes_before_the_brief_and_the_brief_before_the_step() -> None:
    brief = PriorOutput(order=3, label="audience", type="Agent", output={"target_seconds": 22})
    silent = PriorOutput(order=2, label="content", type="Agent", output={"target_seconds": None})
    assert wanted_seconds("30 seconds please", [silent, brief], 25) == 30
    assert wanted_seconds("something short", [silent, brief], 25) == 22
    assert wanted_seconds("something short", [silent], 25) == 25


def test_a_film_is_at_most_half_of_the_footage() -> None:
    assert length_frame(25, 15, 40, 48) == LengthFrame(24, 15, 24)
    assert length_frame(25, 15, 40, 600) == LengthFrame(25, 15, 40)
    assert length_frame(25, 15, 40, 12) == LengthFrame(6, 6, 6)
