"""Filter graphs, built with ffmpeg-python and compiled to text: nothing else is done with it here.

This is the one module that imports ffmpeg-python, and it uses neither its `run` nor its `probe`:
FfmpegRunner runs. Graphs hold numbers and fixed words only; a user's text is in a picture and a
user's file has a hash for a name, so the library's escaping is never put to the test.

Source: specification V2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import ffmpeg

from reprise.media.render_units import TAIL_FRAMES, OverlaySpan, PictureBox, SoundPiece
from reprise.media.timeline import AUDIO_RATE_HZ

_SCALE_FLAGS = "bicubic+accurate_rnd+full_chroma_int"
LEAD_SAMPLES = AUDIO_RATE_HZ // 2
"""Sound decoded before a piece and thrown away: lossy codecs need it to be right from the start."""


@dataclass(frozen=True)
class CompiledGraph:
    """A filter graph as ffmpeg reads it."""

    text: str
    """Value of `-filter_complex`."""
    label: str
    """Output to `-map`."""
    inputs: tuple[int, ...]
    """Which input stands at each place of the command line."""

    def args(self) -> list[str]:
        """Return the arguments that come after the inputs."""
        return ["-filter_complex", self.text, "-map", self.label]


@dataclass(frozen=True)
class PlacedOverlay:
    """An overlay's picture and its place."""

    span: OverlaySpan
    """When it shows."""
    x: int
    """Its left edge."""
    y: int
    """Its top edge."""


@dataclass(frozen=True)
class PictureSpec:
    """The picture of a unit, as its graph needs it."""

    rate: Fraction
    """Frames a second of the film."""
    width: int
    """Width of the film."""
    height: int
    """Height of the film."""
    box: PictureBox
    """Where the source's picture lies in it."""
    in_matrix: str
    """Colour matrix of the source: `auto`, `bt709` or `bt601`."""
    hdr: bool
    """Whether it must be tone-mapped."""
    overlays: tuple[PlacedOverlay, ...]
    """Inputs 1, 2, … in this order."""
    origin_seconds: Fraction
    """The source's own time at which the film begins; see `picture_graph`."""


def picture_graph(spec: PictureSpec) -> CompiledGraph:
    """Return the graph of a picture unit: input 0 is the source, the overlays follow.

    The source must be opened with `-copyts`, at or before the origin, and without dropping frames
    (`-noaccurate_seek`). The origin is half a source frame after the first wanted one: `fps` with
    `round=up` then shows at each film frame the source frame nearest to it, and, unlike a seek that
    drops frames, also finds a frame that stands since before the cut (VFR).
    """
    stream = ffmpeg.input("0")["V:0"]
    stream = stream.filter("setpts", _from(spec.origin_seconds))
    stream = stream.filter("fps", fps=_fraction(spec.rate), start_time=0, round="up")
    stream = stream.filter("tpad", stop_mode="clone", stop=TAIL_FRAMES)
    stream = _tone_mapped(stream, spec) if spec.hdr else _scaled(stream, spec)
    stream = stream.filter("pad", spec.width, spec.height, spec.box.x, spec.box.y, "black")
    stream = _as_film(stream)
    for number, overlay in enumerate(spec.overlays, start=1):
        stream = _overlaid(stream, ffmpeg.input(str(number))["v:0"], overlay, spec.rate)
    return _compiled(stream, 1 + len(spec.overlays))


def frames_graph() -> CompiledGraph:
    """Return the graph that makes a film of RGB pictures, over black where they are transparent."""
    stream = ffmpeg.input("0")["v:0"].filter("format", "gbrap").filter("premultiply", inplace=1)
    stream = stream.filter("format", "gbrp")
    stream = stream.filter("scale", out_color_matrix="bt709", out_range="tv", flags=_SCALE_FLAGS)
    return _compiled(_as_film(stream), 1)


def sound_graph(pieces: Sequence[SoundPiece], origins: Sequence[Fraction | None]) -> CompiledGraph:
    """Return the graph that joins the sound of all cuts, to the sample, and measures it.

    Args:
        pieces: One for each input.
        origins: Each source's own time `LEAD_SAMPLES` before its piece; None for silence.
    """
    parts = []
    for number, (piece, origin) in enumerate(zip(pieces, origins, strict=True)):
        count, lead = piece.sample_count, LEAD_SAMPLES
        part = ffmpeg.input(str(number))["a:0"]
        if origin is not None:
            part = part.filter("asetpts", _from(origin))
        # async=1 fills a gap in the source, or a late start, with silence instead of closing it.
        part = part.filter("aresample", AUDIO_RATE_HZ, **{"async": 1, "first_pts": 0})
        part = part.filter("aformat", sample_fmts="fltp", channel_layouts="stereo")
        part = part.filter("atrim", start_sample=lead, end_sample=lead + count)
        part = part.filter("asetpts", "PTS-STARTPTS").filter("apad", whole_len=count)
        if piece.fade_in_samples:
            part = part.filter("afade", type="in", start_sample=0, ns=piece.fade_in_samples)
        if piece.fade_out_samples:
            start = count - piece.fade_out_samples
            part = part.filter("afade", type="out", ss=start, ns=piece.fade_out_samples)
        parts.append(part)
    stream = ffmpeg.filter(parts, "concat", n=len(parts), v=0, a=1)
    return _compiled(_measured(stream), len(parts))


def level_graph(filters: Sequence[tuple[str, dict[str, str]]], sample_count: int) -> CompiledGraph:
    """Return the graph that brings the sound to its level: filters, exact length, measuring."""
    stream = ffmpeg.input("0")["a:0"]
    for name, options in filters:
        stream = stream.filter(name, **options)
    stream = stream.filter("aresample", AUDIO_RATE_HZ)
    stream = stream.filter("apad", whole_len=sample_count).filter("atrim", end_sample=sample_count)
    return _compiled(_measured(stream), 1)


def measure_graph() -> CompiledGraph:
    """Return the graph that only measures loudness."""
    return _compiled(_measured(ffmpeg.input("0")["a:0"]), 1)


def _as_film(stream: ffmpeg.Stream) -> ffmpeg.Stream:
    """Return a picture that has BT.709 limited-range values, tagged as such."""
    stream = stream.filter("setsar", 1).filter("format", "yuv420p")
    return stream.filter(
        "setparams",
        range="tv",
        color_primaries="bt709",
        color_trc="bt709",
        colorspace="bt709",
        field_mode="prog",
    )


def _scaled(stream: ffmpeg.Stream, spec: PictureSpec) -> ffmpeg.Stream:
    return stream.filter(
        "scale",
        spec.box.width,
        spec.box.height,
        flags=_SCALE_FLAGS,
        in_color_matrix=spec.in_matrix,
        out_color_matrix="bt709",
        out_range="tv",
    )


def _tone_mapped(stream: ffmpeg.Stream, spec: PictureSpec) -> ffmpeg.Stream:
    """Scale first: tone-mapping works in floating point, and its cost grows with the pixels."""
    stream = stream.filter("scale", spec.box.width, spec.box.height, flags=_SCALE_FLAGS)
    stream = stream.filter("zscale", transfer="linear", npl=100).filter("format", "gbrpf32le")
    stream = stream.filter("zscale", primaries="bt709")
    stream = stream.filter("tonemap", tonemap="hable", desat=0)
    return stream.filter("zscale", transfer="bt709", matrix="bt709", range="tv")


def _overlaid(
    stream: ffmpeg.Stream, picture: ffmpeg.Stream, overlay: PlacedOverlay, rate: Fraction
) -> ffmpeg.Stream:
    span = overlay.span
    picture = picture.filter("format", "rgba")
    picture = picture.filter("scale", out_color_matrix="bt709", out_range="tv")
    picture = picture.filter("format", "yuva420p")
    if span.fade_in_frames or span.fade_out_frames:
        picture = picture.filter("loop", loop=span.end_frame, size=1)
        picture = picture.filter("settb", "AVTB")
        picture = picture.filter("setpts", f"N/({_fraction(rate)})/TB")
    if span.fade_in_frames:
        picture = picture.filter(
            "fade",
            type="in",
            alpha=1,
            start_time=_seconds(span.start_frame / rate),
            duration=_seconds(span.fade_in_frames / rate),
        )
    if span.fade_out_frames:
        picture = picture.filter(
            "fade",
            type="out",
            alpha=1,
            start_time=_seconds((span.end_frame - span.fade_out_frames) / rate),
            duration=_seconds(span.fade_out_frames / rate),
        )
    # By time, not by frame number: the frame counter of this filter's input runs ahead by the
    # frames that it holds back. Half a frame of margin keeps rounding out.
    start = _seconds(Fraction(2 * span.start_frame - 1, 2) / rate)
    end = _seconds(Fraction(2 * span.end_frame - 1, 2) / rate)
    return ffmpeg.overlay(
        stream,
        picture,
        x=overlay.x,
        y=overlay.y,
        format="yuv420",
        eof_action="repeat",
        enable=f"between(t,{start},{end})",
    )


def _measured(stream: ffmpeg.Stream) -> ffmpeg.Stream:
    stream = stream.filter("ebur128", peak="true", framelog="quiet")
    return stream.filter("aformat", sample_fmts="fltp", sample_rates=AUDIO_RATE_HZ)


def _compiled(stream: ffmpeg.Stream, input_count: int) -> CompiledGraph:
    args: list[str] = ffmpeg.output(stream, "out").get_args()
    inputs = tuple(int(args[at + 1]) for at, arg in enumerate(args) if arg == "-i")
    if sorted(inputs) != list(range(input_count)):
        message = f"the graph has the inputs {inputs}, not {input_count}"
        raise AssertionError(message)
    text = args[args.index("-filter_complex") + 1]
    return CompiledGraph(text, args[args.index("-map") + 1], inputs)


def _from(origin: Fraction) -> str:
    """Return the expression that counts times from an origin."""
    return f"round(PTS-({_fraction(origin)})/TB)"


def _fraction(rate: Fraction) -> str:
    return f"{rate.numerator}/{rate.denominator}"


def _seconds(value: Fraction) -> str:
    return f"{float(value):.6f}"
