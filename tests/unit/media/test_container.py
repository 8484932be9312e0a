from fractions import Fraction

import pytest

from reprise.media.container import demuxer_of, film_rate, is_variable, refusal

NTSC = Fraction(30000, 1001)


@pytest.mark.parametrize(
    ("head", "demuxer"),
    [
        (b"\x00\x00\x00\x20ftypisom", "mov"),
        (b"\x00\x00\x07\xe5moov", "mov"),
        (b"\x00\x00\x00\x08wide\x00\x00", "mov"),
        (b"\x1a\x45\xdf\xa3\x9f", "matroska"),
        (b"RIFF\x00\x00\x00\x00AVI LIST", "avi"),
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", "wav"),
        (b"ID3\x04\x00", "mp3"),
        (b"\xff\xfb\x90\x64", "mp3"),
        (b"\xff\xf1\x50\x80", "aac"),
        (b"fLaC\x00", "flac"),
        (b"OggS\x00", "ogg"),
        (b"FLV\x01\x05", "flv"),
        (b"\x00\x00\x01\xba\x44", "mpeg"),
        ((b"\x47" + b"\x00" * 187) * 5, "mpegts"),
        (b"\x00" * 4 + (b"\x47" + b"\x00" * 191) * 5, "mpegts"),
    ],
)
def test_a_container_is_known_by_its_first_bytes(head: bytes, demuxer: str) -> None:
    assert demuxer_of(head) == demuxer


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"#EXTM3U\n#EXT-X-VERSION:3\n",
        b"ffconcat version 1.0\nfile 'a.mp4'\n",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff\xe0\x00\x10JFIF"[:2],
        b"RIFF\x00\x00\x00\x00WEBPVP8 ",
        b"hello, this is a text",
        b"G" + b"x" * 1000,
    ],
)
def test_what_is_no_container_has_no_demuxer(head: bytes) -> None:
    assert demuxer_of(head) is None


def test_a_jpeg_is_not_taken_for_an_mp3() -> None:
    assert demuxer_of(b"\xff\xd8\xff\xe0\x00\x10JFIF") is None


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (b"", "it is empty"),
        (
            b"\xef\xbb\xbf#EXTM3U\n",
            "it is a list or document that points at other files, not a media file",
        ),
        (b"\xff\xd8\xff\xe0", "it is a still picture, not a video"),
        (b"hello", "it is no media file of a known kind"),
    ],
)
def test_a_refusal_says_why(head: bytes, reason: str) -> None:
    assert refusal(head) == reason


def test_even_frames_are_not_variable_in_whole_milliseconds() -> None:
    assert not is_variable([round(index / 30, 3) for index in range(300)])


def test_even_frames_are_not_variable_out_of_order() -> None:
    times = [index / 25 for index in range(100)]
    times[10:14] = [times[13], times[11], times[12], times[10]]
    assert not is_variable(times)


def test_thirty_then_six_frames_a_second_are_variable() -> None:
    assert is_variable([*(n / 30 for n in range(100)), *(10 / 3 + n / 6 for n in range(40))])


def test_one_lost_frame_of_many_is_not_variable() -> None:
    assert not is_variable([n / 25 for n in range(500) if n != 70])


@pytest.mark.parametrize("count", [0, 1, 3])
def test_too_few_frames_are_not_variable(count: int) -> None:
    assert not is_variable([0.0, 0.1, 0.9][:count])


@pytest.mark.parametrize(
    ("average", "base", "rate"),
    [
        (Fraction(25), Fraction(25), Fraction(25)),
        (Fraction(2997, 100), Fraction(30), NTSC),
        (Fraction(29970, 1000), None, NTSC),
        (Fraction(10_000_000, 333_667), NTSC, NTSC),
        (Fraction(299, 10), NTSC, NTSC),
        (Fraction(47_952, 2000), Fraction(24000, 1001), Fraction(24000, 1001)),
        (Fraction(17), Fraction(17), Fraction(17)),
        (None, None, Fraction(25)),
    ],
)
def test_an_even_source_keeps_its_rate(
    average: Fraction | None, base: Fraction | None, rate: Fraction
) -> None:
    assert film_rate(average, base, variable=False) == rate


@pytest.mark.parametrize(
    ("average", "base", "rate"),
    [
        (Fraction(132, 10), Fraction(30), Fraction(30)),
        (Fraction(2985, 100), Fraction(90_000), NTSC),
        (Fraction(7), Fraction(1000), Fraction(12)),
        (Fraction(110), Fraction(1000), Fraction(60)),
    ],
)
def test_an_uneven_source_gets_a_rate_that_holds_its_frames(
    average: Fraction, base: Fraction, rate: Fraction
) -> None:
    assert film_rate(average, base, variable=True) == rate
