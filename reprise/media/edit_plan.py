"""The director's choice of sentences and shots, turned into cuts in whole frames.

What holds of every decision, as far as the footage allows: no word is cut off; no cut holds a
black, frozen or silent span over 0.7 s; the film is between the room's bounds
and at most half of the footage; there are at least `cuts_min` cuts. Names that the analysis does
not know, and sentences that cannot be shown, are left out with a note. Deterministic.

The parts: spoken.py (when words are heard), usable.py (stretches and frames), passages.py (the
choice), film_length.py (fill, shorten, split), edit_report.py (why, for people).

Source: specification W3 (EditRoom), V9.
"""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from reprise.errors import StepFailed
from reprise.media.edit_report import edit_report
from reprise.media.film_length import (
    fill,
    footage_seconds,
    length_frame,
    multiply,
    shorten,
)
from reprise.media.passages import Piece, passages_of, pieces_of, shot_seconds
from reprise.media.spoken import Footage, footage_of
from reprise.media.usable import shots_in
from reprise.model.edit import Cut, EditDecision
from reprise.model.media import VideoAnalysis
from reprise.model.workflow import EditRoomConfig

__all__ = ["edit_decision", "edit_report"]

TITLE_CHARS_MAX = 120


def edit_decision(
    choice: JsonValue,
    analysis: VideoAnalysis,
    config: EditRoomConfig,
    target_seconds: float | None = None,
) -> EditDecision:
    """Return the cuts in whole frames that a director's choice stands for.

    Args:
        choice: `{title, cuts: [{sentence_ids, shot_ids, reason}]}`, perhaps with a `rationale`.
        analysis: The footage.
        config: Bounds of the film.
        target_seconds: Wanted length; None takes the config's.

    Raises:
        StepFailed: The choice has no cuts, or nothing in the footage can be shown.
    """
    target = config.target_seconds if target_seconds is None else target_seconds
    notes: list[str] = []
    for ignored in ((), ("freeze",), ("freeze", "silence")):
        footages = _footages(analysis, ignored)
        attempt: list[str] = []
        pieces = _pieces(choice, footages, config, target, attempt)
        if pieces:
            notes += attempt
            if ignored:
                notes.append(
                    f"nothing is left of the footage without its {' and '.join(ignored)} spans, "
                    "so they were kept"
                )
            return _decision(choice, pieces, target, notes)
    names = ", ".join(source.name for source in analysis.sources) or "no source"
    message = (
        f"nothing in the footage ({names}) can be shown: it is black, or too short; "
        "add a video with a picture to the project"
    )
    raise StepFailed(message)


def _footages(analysis: VideoAnalysis, ignored: Sequence[str]) -> dict[str, Footage]:
    """Return the sources, without the spans of the kinds that are ignored."""
    update = dict.fromkeys(ignored, ())
    return {source.id: footage_of(source.model_copy(update=update)) for source in analysis.sources}


def _pieces(
    choice: JsonValue,
    footages: Mapping[str, Footage],
    config: EditRoomConfig,
    target: float,
    notes: list[str],
) -> list[Piece]:
    frame = length_frame(target, config.seconds_min, config.seconds_max, footage_seconds(footages))
    seconds_each = shot_seconds(frame.target, config.cuts_min)
    passages = passages_of(choice, footages, seconds_each, notes)
    passages = shorten(passages, frame, notes)
    passages = fill(passages, footages, frame, seconds_each, notes)
    return pieces_of(multiply(passages, footages, frame, seconds_each, config.cuts_min))


def _decision(
    choice: JsonValue, pieces: Sequence[Piece], target: float, notes: Sequence[str]
) -> EditDecision:
    # The rate of most of the film's time: frames alone would let a short cut at 60 a second win.
    seconds: dict[str, float] = {}
    for piece in pieces:
        rate = piece.passage.footage.source.frame_rate
        seconds[rate] = seconds.get(rate, 0.0) + piece.seconds
    return EditDecision(
        title=_text(choice, "title")[:TITLE_CHARS_MAX].strip() or "Untitled",
        frame_rate=max(seconds, key=lambda rate: seconds[rate]),
        target_seconds=round(target, 3),
        cuts=tuple(_cut(number, piece) for number, piece in enumerate(pieces, start=1)),
        rationale=_text(choice, "rationale"),
        notes=tuple(dict.fromkeys(notes)),
    )


def _cut(number: int, piece: Piece) -> Cut:
    footage = piece.passage.footage
    return Cut(
        id=f"c{number}",
        source_id=footage.source.id,
        start_frame=piece.stretch.start_frame,
        end_frame=piece.stretch.end_frame,
        sentence_ids=piece.passage.sentence_ids,
        shot_ids=shots_in(footage, piece.stretch),
        reason=piece.passage.reason,
    )


def _text(choice: JsonValue, name: str) -> str:
    value = choice.get(name) if isinstance(choice, dict) else None
    return " ".join(value.split()) if isinstance(value, str) else ""
