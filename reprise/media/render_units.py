"""A plan becomes render units: one for the picture of each cut, one for the whole sound.

A unit holds everything that its bytes depend on and nothing else: its overlays are in unit-local
frames, so a unit that only moved in the film keeps its key. Keys go through `canonical`; whoever
changes what a key is made of raises `UNIT_REVISION`.

Source: specification V9, V10.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from pydantic import JsonValue

from reprise.canonical import canonical_json, digest_fields
from reprise.errors import MediaError
from reprise.media.timeline import (
    FilmClock,
    PlacedCut,
    frame_at,
    nearest,
    parse_rate,
    place_cuts,
)
from reprise.model.render import RenderPlan

UNIT_REVISION = "1"
"""Raised when the same fields are to give other bytes."""
TITLE_FADE_SECONDS = Fraction(3, 10)
"""How long the title takes to appear and to go."""
TAIL_FRAMES = 2
"""Frames that may be repeated at a source's very end, where a container claims too many."""
PRESETS = (
    "ultrafast",
    "superfast",
    "veryfast",
    "faster",
    "fast",
    "medium",
    "slow",
    "slower",
    "veryslow",
)
"""x264 presets that a plan may name."""
SIZE_MIN = 16
"""Smallest width and height of a film."""
SIZE_MAX = 8192
"""Largest width and height of a film."""


@dataclass(frozen=True)
class OverlaySpan:
    """A text over the picture, in the unit's own frames."""

    kind: Literal["title", "caption"]
    """How it looks and where it stands."""
    text: str
    """What it says."""
    start_frame: int
    """First frame with it."""
    end_frame: int
    """First frame without it."""
    fade_in_frames: int = 0
    """Frames over which it appears."""
    fade_out_frames: int = 0
    """Frames over which it goes."""


@dataclass(frozen=True)
class PictureUnit:
    """The picture of one cut, texts included."""

    cut: PlacedCut
    """What it shows."""
    overlays: tuple[OverlaySpan, ...]
    """By rising start; captions above the title."""

    @property
    def frame_count(self) -> int:
        """Frames that it must have."""
        return self.cut.film_frames


@dataclass(frozen=True)
class SoundPiece:
    """The sound of one cut."""

    source_id: str | None
    """Which source; None is silence."""
    start_seconds: Fraction
    """Where it begins in the source."""
    sample_count: int
    """Its length in the film."""
    fade_in_samples: int
    """Fade at its beginning."""
    fade_out_samples: int
    """Fade at its end."""


@dataclass(frozen=True)
class PictureBox:
    """Where a source's picture lies in the film's frame."""

    width: int
    """Scaled width, even."""
    height: int
    """Scaled height, even."""
    x: int
    """Bar at the left, even."""
    y: int
    """Bar at the top, even."""


def plan_clock(plan: RenderPlan) -> FilmClock:
    """Check a plan and lay it out.

    Raises:
        MediaError: The plan cannot be rendered; names the source, cut or setting.
    """
    film_rate = parse_rate(plan.frame_rate, what="The film")
    for name, size in (("width", plan.width), ("height", plan.height)):
        if size % 2 or not SIZE_MIN <= size <= SIZE_MAX:
            message = f"The film's {name} is {size}; it must be even, {SIZE_MIN} to {SIZE_MAX}"
            raise MediaError(message)
    if plan.preset not in PRESETS:
        message = f"The plan names the x264 preset {plan.preset!r}; choose one of {PRESETS}"
        raise MediaError(message)
    rates: dict[str, Fraction] = {}
    for source in plan.sources:
        if source.id in rates:
            message = f"The plan names the source {source.id!r} twice"
            raise MediaError(message)
        if source.width < 1 or source.height < 1:
            message = (
                f"Source {source.id!r} is {source.width}x{source.height} pixels: it has no picture"
            )
            raise MediaError(message)
        rates[source.id] = parse_rate(source.frame_rate, what=f"Source {source.id!r}")
    clock = place_cuts(plan.cuts, rates, film_rate)
    frame_counts = {source.id: source.frame_count for source in plan.sources}
    for cut in clock.cuts:
        if cut.end_frame > frame_counts[cut.source_id]:
            message = (
                f"Cut {cut.index + 1} of source {cut.source_id!r} ends at frame {cut.end_frame}, "
                f"but the source has {frame_counts[cut.source_id]} frames"
            )
            raise MediaError(message)
    return clock


def picture_units(plan: RenderPlan, clock: FilmClock) -> tuple[PictureUnit, ...]:
    """Return a unit for each cut, with the title and the captions that it shows."""
    spans = [*_title_spans(plan, clock), *_caption_spans(plan, clock)]
    return tuple(
        PictureUnit(cut, tuple(part for span in spans if (part := _part_in(span, cut)) is not None))
        for cut in clock.cuts
    )


def sound_pieces(plan: RenderPlan, clock: FilmClock) -> tuple[SoundPiece, ...]:
    """Return the sound of each cut; together exactly the film's samples.

    Two cuts that lie side by side in the source get no fade between them: there is no edge to
    soften, and speech may run across it.
    """
    audible = {source.id for source in plan.sources if source.has_audio}
    fade = max(0, nearest(Fraction(plan.audio_fade_seconds) * 48_000))
    pieces = []
    for cut in clock.cuts:
        before = clock.cuts[cut.index - 1] if cut.index else None
        after = clock.cuts[cut.index + 1] if cut.index + 1 < len(clock.cuts) else None
        count = cut.end_sample - cut.start_sample
        joined_before = before is not None and cut.continues(before)
        joined_after = after is not None and after.continues(cut)
        pieces.append(
            SoundPiece(
                source_id=cut.source_id if cut.source_id in audible else None,
                start_seconds=cut.source_start_seconds,
                sample_count=count,
                fade_in_samples=0 if joined_before else min(fade, count // 2),
                fade_out_samples=0 if joined_after else min(fade, count // 2),
            )
        )
    return tuple(pieces)


def picture_box(source_width: int, source_height: int, width: int, height: int) -> PictureBox:
    """Return how a picture fits whole into a frame, with bars where the shapes differ.

    All figures are even, as 4:2:0 wants them; a difference of shape below two pixels gives no bar.
    """
    scale = min(Fraction(width, source_width), Fraction(height, source_height))
    inner_width = min(width, max(2, 2 * nearest(source_width * scale / 2)))
    inner_height = min(height, max(2, 2 * nearest(source_height * scale / 2)))
    x = (width - inner_width) // 4 * 2
    y = (height - inner_height) // 4 * 2
    return PictureBox(inner_width, inner_height, x, y)


def track_timescale(rate: Fraction) -> int:
    """Return the ticks a second in which every frame of a rate begins on a whole tick."""
    ticks = rate.numerator
    while ticks < 10_000:
        ticks *= 2
    return ticks


def picture_encoder_args(plan: RenderPlan, rate: Fraction, threads: int) -> tuple[str, ...]:
    """Return the encoder's part of a unit's command line.

    Every unit has the same parameters and a closed GOP, so that they join by copying. `threads` is
    pinned because another count gives other bytes.
    """
    gop = max(1, nearest(rate * 2))
    return (
        *("-c:v", "libx264", "-preset", plan.preset, "-crf", str(plan.crf)),
        *("-profile:v", "high", "-pix_fmt", "yuv420p", "-threads", str(threads)),
        *("-g", str(gop), "-keyint_min", str(gop), "-sc_threshold", "0"),
        *("-flags:v", "+cgop+bitexact", "-fflags", "+bitexact"),
        *("-color_primaries", "bt709", "-color_trc", "bt709", "-colorspace", "bt709"),
        *("-color_range", "tv", "-fps_mode", "passthrough"),
        *("-video_track_timescale", str(track_timescale(rate))),
        *("-map_metadata", "-1", "-f", "mp4"),
    )


def unit_key(kind: str, toolchain: Mapping[str, str], fields: Mapping[str, JsonValue]) -> str:
    """Return the content address of a render unit: 64 hexadecimal digits.

    Args:
        kind: `picture` or `sound`.
        toolchain: What it depends on besides its fields.
        fields: Everything else that its bytes depend on; files by their digest.
    """
    return digest_fields(
        {
            "unit_revision": UNIT_REVISION,
            "kind": kind,
            "toolchain": canonical_json(dict(toolchain)),
            **{f"field:{name}": canonical_json(value) for name, value in fields.items()},
        }
    )


def _title_spans(plan: RenderPlan, clock: FilmClock) -> Sequence[OverlaySpan]:
    if not plan.title or not plan.title.strip():
        return ()
    end = min(clock.frame_count, frame_at(plan.title_seconds, clock.rate))
    if end < 1:
        return ()
    fade = min(nearest(TITLE_FADE_SECONDS * clock.rate), end // 3)
    return (OverlaySpan("title", plan.title.strip(), 0, end, fade, fade),)


def _caption_spans(plan: RenderPlan, clock: FilmClock) -> Sequence[OverlaySpan]:
    spans = []
    for caption in plan.captions:
        start = max(0, frame_at(caption.start_seconds, clock.rate))
        end = min(clock.frame_count, max(start + 1, frame_at(caption.end_seconds, clock.rate)))
        if caption.text.strip() and start < end:
            spans.append(OverlaySpan("caption", caption.text.strip(), start, end))
    return sorted(spans, key=lambda span: (span.start_frame, span.end_frame))


def _part_in(span: OverlaySpan, cut: PlacedCut) -> OverlaySpan | None:
    """Return the part of a film's overlay that a cut shows, in the cut's own frames."""
    start = max(span.start_frame, cut.film_start_frame)
    end = min(span.end_frame, cut.film_end_frame)
    if start >= end:
        return None
    # A fade belongs to the unit that holds the span's own edge.
    fade_in = span.fade_in_frames if start == span.start_frame else 0
    fade_out = span.fade_out_frames if end == span.end_frame else 0
    return OverlaySpan(
        kind=span.kind,
        text=span.text,
        start_frame=start - cut.film_start_frame,
        end_frame=end - cut.film_start_frame,
        fade_in_frames=min(fade_in, end - start),
        fade_out_frames=min(fade_out, end - start),
    )
