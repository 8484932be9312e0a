"""A footage analysis as agents are shown it: a line for each shot and each sentence, with its id.

The raw analysis has the time of every word; what an agent can name is shots and sentences, so a
prompt holds these alone, at an eighth of the size. Which of them cannot be shown stands beside
them. The raw output stays what steps and rules read (specification B6).
"""

from collections.abc import Sequence

from reprise.media.spoken import Footage, footage_of
from reprise.model.media import Sentence, Shot, SourceAnalysis, Span, VideoAnalysis

CLARITY_MIN = 0.5
"""A sentence whose words' mean probability is lower was guessed."""

CLIPPED_MIN = 0.05
"""From this share on, a shot's pixels without detail are told."""


def analysis_view(analysis: VideoAnalysis) -> str:
    """Return the analysis as plain text; times and lengths are seconds."""
    parts = [_source(footage_of(source)) for source in analysis.sources]
    return "\n\n".join(parts + [f"Note: {note}" for note in analysis.notes])


def _source(footage: Footage) -> str:
    source = footage.source
    lines = [f"### {source.id}: {_one_line(source.name)}", _figures(source)]
    lines += [
        f"{name}: {', '.join(_times(span) for span in spans)}"
        for name, spans in (("Black", source.black), ("Frozen", source.freeze))
        if spans
    ]
    lines += ["", "shot | from | length | luma | colour | motion"]
    lines += [_shot(shot) for shot in source.shots]
    sentences = source.transcript.sentences if source.transcript is not None else ()
    if sentences:
        lines += ["", "sentence | from | length | shot | what is said"]
        lines += [_sentence(each, footage) for each in sentences]
    return "\n".join(lines)


def _figures(source: SourceAnalysis) -> str:
    parts = [f"{source.duration_seconds:.1f} s, {source.width}x{source.height}"]
    loudness = source.loudness
    if loudness is None:
        parts.append("no sound")
    elif loudness.integrated_lufs is None:
        parts.append("silent")
    else:
        parts.append(f"{loudness.integrated_lufs:.1f} LUFS")
        if loudness.range_lu is not None:
            parts.append(f"range {loudness.range_lu:.1f} LU")
    transcript = source.transcript
    spoken = transcript is not None and transcript.sentences
    parts.append(f"spoken in {transcript.language}" if transcript and spoken else "no speech")
    if source.partial:
        parts.append("damaged: its end is missing")
    return "; ".join(parts)


def _shot(shot: Shot) -> str:
    length = shot.end_seconds - shot.start_seconds
    clipped = f" | {shot.clipped:.0%} clipped" if shot.clipped >= CLIPPED_MIN else ""
    return (
        f"{shot.id} | {shot.start_seconds:.1f} | {length:.1f} | {shot.luma:.0f} | "
        f"{shot.saturation * 100:.0f} | {shot.motion:.1f}{clipped}"
    )


def _sentence(sentence: Sentence, footage: Footage) -> str:
    words = footage.by_sentence.get(sentence.id, ())
    start = words[0].start if words else sentence.start_seconds
    end = words[-1].end if words else sentence.end_seconds
    text = _one_line(sentence.text)
    doubts = _doubts(sentence, footage)
    if doubts:
        text += f" [{'; '.join(doubts)}]"
    shot = _shot_at(footage.source.shots, start)
    return f"{sentence.id} | {start:.1f} | {end - start:.1f} | {shot} | {text}"


def _doubts(sentence: Sentence, footage: Footage) -> list[str]:
    """Return why a sentence should not be used."""
    doubts = []
    blocked = footage.blocked.get(sentence.id)
    if blocked:
        doubts.append(blocked)
    chances = [word.probability for word in sentence.words]
    if chances and sum(chances) / len(chances) < CLARITY_MIN:
        doubts.append("guessed by the recogniser")
    return doubts


def _shot_at(shots: Sequence[Shot], seconds: float) -> str:
    found = [shot.id for shot in shots if shot.start_seconds <= seconds < shot.end_seconds]
    return found[0] if found else "-"


def _times(span: Span) -> str:
    return f"{span.start_seconds:.1f} to {span.end_seconds:.1f}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
