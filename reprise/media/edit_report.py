"""Why each cut was chosen, as Markdown for people."""

from fractions import Fraction

from reprise.media.spoken import Footage, footage_of
from reprise.model.edit import Cut, EditDecision
from reprise.model.media import VideoAnalysis

HEARD_CHARS_MAX = 300
"""What is heard in a cut is shown up to this many characters."""


def edit_report(decision: EditDecision, analysis: VideoAnalysis) -> str:
    """Return a report: for each cut its time in film and source, what is heard, and why.

    Args:
        decision: The edit.
        analysis: The footage that it was made from.
    """
    footages = {source.id: footage_of(source) for source in analysis.sources}
    lengths = [_seconds(cut, footages[cut.source_id]) for cut in decision.cuts]
    lines = [
        f"# {_plain(decision.title)}",
        "",
        f"{len(decision.cuts)} cuts, {float(sum(lengths)):.1f} s; "
        f"{decision.target_seconds:g} s were wanted.",
    ]
    if decision.rationale:
        lines += ["", _plain(decision.rationale)]
    lines += [
        "",
        "Times are minutes and seconds.",
        "",
        "| cut | in the film | in the source | what is heard | why |",
        "| --- | --- | --- | --- | --- |",
    ]
    at = Fraction(0)
    for cut, length in zip(decision.cuts, lengths, strict=True):
        footage = footages[cut.source_id]
        begins = Fraction(cut.start_frame) / footage.source.rate
        cells = (
            cut.id,
            f"{_clock(at)} – {_clock(at + length)}",
            f"{footage.source.name} {_clock(begins)} – {_clock(begins + length)}",
            _heard(cut, footage) or f"(no speech; {', '.join(cut.shot_ids)})",
            cut.reason,
        )
        lines.append("| " + " | ".join(_plain(cell) for cell in cells) + " |")
        at += length
    if decision.notes:
        lines += ["", "## Notes", "", *(f"- {_plain(note)}" for note in decision.notes)]
    return "\n".join(lines) + "\n"


def _seconds(cut: Cut, footage: Footage) -> Fraction:
    return Fraction(cut.end_frame - cut.start_frame) / footage.source.rate


def _heard(cut: Cut, footage: Footage) -> str:
    start, end = cut.start_frame / footage.rate, cut.end_frame / footage.rate
    words = [word.text for word in footage.words if start <= (word.start + word.end) / 2 < end]
    text = " ".join(words)
    return text if len(text) <= HEARD_CHARS_MAX else text[: HEARD_CHARS_MAX - 1] + "…"


def _clock(seconds: Fraction) -> str:
    tenths = round(seconds * 10)
    return f"{tenths // 600}:{tenths % 600 // 10:02d}.{tenths % 10}"


def _plain(text: str) -> str:
    """Return a text that stays in its table cell."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|")
