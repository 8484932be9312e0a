"""Compiled filter graphs, pinned: a change here is a change of every render unit's key."""

from fractions import Fraction

from reprise.media.render_units import OverlaySpan, PictureBox, SoundPiece
from resources.filter_graph import (
    PictureSpec,
    PlacedOverlay,
    level_graph,
    picture_graph,
    sound_graph,
)

NTSC = Fraction(30000, 1001)


def test_a_picture_with_a_caption() -> None:
    graph = picture_graph(
        PictureSpec(
            rate=NTSC,
            width=1280,
            height=720,
            box=PictureBox(960, 720, 160, 0),
            in_matrix="auto",
            hdr=False,
            overlays=(PlacedOverlay(OverlaySpan("caption", "%{pts}':;[x]", 3, 60), 40, 600),),
            origin_seconds=Fraction(7, 3),
        )
    )
    assert graph.inputs == (0, 1)
    assert graph.label == "[s11]"
    assert graph.text.split(";") == [
        "[0:V:0]setpts=round(PTS-(7/3)/TB)[s0]",
        "[s0]fps=fps=30000/1001:round=up:start_time=0[s1]",
        "[s1]tpad=stop=2:stop_mode=clone[s2]",
        "[s2]scale=960:720:flags=bicubic+accurate_rnd+full_chroma_int:in_color_matrix=auto"
        ":out_color_matrix=bt709:out_range=tv[s3]",
        "[s3]pad=1280:720:160:0:black[s4]",
        "[s4]setsar=1[s5]",
        "[s5]format=yuv420p[s6]",
        "[s6]setparams=color_primaries=bt709:color_trc=bt709:colorspace=bt709:field_mode=prog"
        ":range=tv[s7]",
        "[1:v:0]format=rgba[s8]",
        "[s8]scale=out_color_matrix=bt709:out_range=tv[s9]",
        "[s9]format=yuva420p[s10]",
        "[s7][s10]overlay=enable=between(t\\,0.083417\\,1.985317):eof_action=repeat"
        ":format=yuv420:x=40:y=600[s11]",
    ]


def test_a_hdr_picture_is_scaled_before_it_is_tone_mapped() -> None:
    graph = picture_graph(
        PictureSpec(
            rate=NTSC,
            width=640,
            height=360,
            box=PictureBox(640, 360, 0, 0),
            in_matrix="auto",
            hdr=True,
            overlays=(),
            origin_seconds=Fraction(0),
        )
    )
    names = [part.partition("]")[2].partition("=")[0] for part in graph.text.split(";")]
    assert names == [
        *("setpts", "fps", "tpad", "scale", "zscale", "format", "zscale", "tonemap", "zscale"),
        *("pad", "setsar", "format", "setparams"),
    ]


def test_sound_of_two_cuts_and_a_silence() -> None:
    pieces = (
        SoundPiece("v1", Fraction(2), 48_048, 0, 1440),
        SoundPiece(None, Fraction(0), 9_600, 0, 0),
    )
    graph = sound_graph(pieces, [Fraction(3, 2), None])
    assert graph.inputs == (0, 1)
    assert graph.text.split(";") == [
        "[0:a:0]asetpts=round(PTS-(3/2)/TB)[s0]",
        "[s0]aresample=48000:async=1:first_pts=0[s1]",
        "[s1]aformat=channel_layouts=stereo:sample_fmts=fltp[s2]",
        "[s2]atrim=end_sample=72048:start_sample=24000[s3]",
        "[s3]asetpts=PTS-STARTPTS[s4]",
        "[s4]apad=whole_len=48048[s5]",
        "[s5]afade=ns=1440:ss=46608:type=out[s6]",
        "[1:a:0]aresample=48000:async=1:first_pts=0[s7]",
        "[s7]aformat=channel_layouts=stereo:sample_fmts=fltp[s8]",
        "[s8]atrim=end_sample=33600:start_sample=24000[s9]",
        "[s9]asetpts=PTS-STARTPTS[s10]",
        "[s10]apad=whole_len=9600[s11]",
        "[s6][s11]concat=a=1:n=2:v=0[s12]",
        "[s12]ebur128=framelog=quiet:peak=true[s13]",
        "[s13]aformat=sample_fmts=fltp:sample_rates=48000[s14]",
    ]


def test_levelled_sound_has_its_rate_and_length_whatever_the_filters_gave() -> None:
    graph = level_graph([("loudnorm", {"I": "-14.00", "linear": "true"})], 96_000)
    assert graph.text.split(";")[:4] == [
        "[0:a:0]loudnorm=I=-14.00:linear=true[s0]",
        "[s0]aresample=48000[s1]",
        "[s1]apad=whole_len=96000[s2]",
        "[s2]atrim=end_sample=96000[s3]",
    ]


def test_many_cuts_compile() -> None:
    pieces = [SoundPiece("v1", Fraction(n), 4800, 10, 10) for n in range(150)]
    graph = sound_graph(pieces, [Fraction(n) for n in range(150)])
    assert sorted(graph.inputs) == list(range(150))
