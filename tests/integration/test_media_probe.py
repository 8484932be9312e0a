import os
from pathlib import Path

import pytest

from reprise.errors import MediaUnreadable
from resources.media_probe import ProbedMedia, probe_media
from tests.media_files import clip, make_media, stamped

PIXELS_MAX = 40_000_000


def probe(path: Path) -> ProbedMedia:
    return probe_media(path, max_pixels=PIXELS_MAX)


def sample(tmp_path: Path, **options: object) -> Path:
    return clip(tmp_path / "a.mp4", **options)  # type: ignore[arg-type]  # Options of a table of tests.


def test_a_plain_clip_is_told_as_it_is(tmp_path: Path) -> None:
    told = probe(clip(tmp_path / "a.mp4", seconds=2.0, rate="25", size="320x180")).probe
    assert (told.has_video, told.has_audio) == (True, True)
    assert (told.width, told.height, told.rotation_degrees) == (320, 180, 0)
    assert (told.frame_rate, told.frame_count, told.variable_frame_rate) == ("25", 50, False)
    assert round(told.duration_seconds, 2) == 2.0
    assert (told.audio_rate_hz, told.hdr) == (48000, False)


@pytest.mark.parametrize(
    "rate", ["24000/1001", "24", "25", "30000/1001", "30", "50", "60000/1001", "60"]
)
@pytest.mark.parametrize("extension", ["mp4", "mkv", "ts"])
def test_the_rate_is_exact(tmp_path: Path, rate: str, extension: str) -> None:
    path = stamped(tmp_path / f"a.{extension}", frames=90, rate=rate, size="64x36")
    told = probe(path).probe
    assert (told.frame_rate, told.variable_frame_rate) == (rate, False)
    assert abs(told.frame_count - 90) <= 1


def test_a_clip_without_sound_has_none(tmp_path: Path) -> None:
    told = probe(clip(tmp_path / "a.mp4", sound=None)).probe
    assert (told.has_audio, told.audio_rate_hz) == (False, None)


@pytest.mark.parametrize(("turn", "size"), [(90, (180, 320)), (180, (320, 180))])
def test_a_rotated_clip_has_its_display_size(
    tmp_path: Path, turn: int, size: tuple[int, int]
) -> None:
    upright = clip(tmp_path / "a.mp4", seconds=0.4)
    turned = make_media(
        tmp_path / "b.mp4", "-display_rotation", str(turn), "-i", str(upright), "-c", "copy"
    )
    told = probe(turned).probe
    assert (told.width, told.height) == size
    assert told.rotation_degrees == {90: 270, 180: 180}[turn]


def test_pixels_that_are_not_square_are_made_so(tmp_path: Path) -> None:
    path = make_media(
        tmp_path / "a.mp4",
        *("-f", "lavfi", "-i", "testsrc2=s=720x576:r=25", "-vf", "setsar=64/45"),
        *("-frames:v", "5", "-c:v", "libx264", "-pix_fmt", "yuv420p"),
    )
    assert (probe(path).probe.width, probe(path).probe.height) == (1024, 576)


def test_uneven_frames_are_told_with_the_rate_that_holds_them(tmp_path: Path) -> None:
    path = make_media(
        tmp_path / "a.mp4",
        *("-f", "lavfi", "-i", "testsrc2=s=64x36:r=30:d=8"),
        *("-vf", "select='lt(n,90)+not(mod(n,5))'", "-fps_mode", "passthrough"),
        *("-c:v", "libx264", "-bf", "0", "-pix_fmt", "yuv420p"),
    )
    told = probe(path).probe
    assert (told.variable_frame_rate, told.frame_rate) == (True, "30")
    assert abs(told.frame_count - 240) <= 5


def test_a_pq_clip_is_hdr(tmp_path: Path) -> None:
    path = make_media(
        tmp_path / "a.mp4",
        *("-f", "lavfi", "-i", "testsrc2=s=64x64:r=25", "-frames:v", "5"),
        *("-vf", "setparams=color_primaries=bt2020:color_trc=smpte2084:colorspace=bt2020nc"),
        *("-c:v", "libx264", "-pix_fmt", "yuv420p10le"),
    )
    assert probe(path).probe.hdr


def test_cover_art_is_no_picture(tmp_path: Path) -> None:
    cover = make_media(
        tmp_path / "c.png", "-f", "lavfi", "-i", "testsrc2=s=64x64", "-frames:v", "1"
    )
    song = make_media(
        tmp_path / "a.mp3",
        *("-f", "lavfi", "-i", "sine=d=1", "-i", str(cover), "-map", "0", "-map", "1"),
        *("-c:v", "copy", "-disposition:v", "attached_pic"),
    )
    told = probe(song).probe
    assert (told.has_video, told.has_audio) == (False, True)


def test_the_name_does_not_decide_what_a_file_is(tmp_path: Path) -> None:
    path = clip(tmp_path / "a.mkv", seconds=0.4).rename(tmp_path / "a.mp4")
    assert probe(path).demuxer == "matroska"
    assert probe(path).probe.has_video


def test_a_late_picture_is_told(tmp_path: Path) -> None:
    source = clip(tmp_path / "a.mp4", seconds=1.0)
    late = make_media(
        tmp_path / "b.mp4",
        *("-i", str(source), "-itsoffset", "0.4", "-i", str(source)),
        *("-map", "0:a", "-map", "1:v", "-c", "copy"),
    )
    assert round(probe(late).video_start_seconds, 2) == 0.4


def unreadable(path: Path) -> str:
    with pytest.raises(MediaUnreadable) as caught:
        probe(path)
    return str(caught.value)


def test_an_empty_file_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "talk.mp4").touch()
    assert unreadable(tmp_path / "talk.mp4") == "'talk.mp4' is not read: it is empty"


def test_a_missing_file_is_unreadable(tmp_path: Path) -> None:
    assert unreadable(tmp_path / "no.mp4").startswith("'no.mp4' cannot be opened")


def test_a_text_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "talk.mp4").write_text("hello " * 100)
    assert "no media file of a known kind" in unreadable(tmp_path / "talk.mp4")


def test_a_still_picture_is_unreadable(tmp_path: Path) -> None:
    path = make_media(tmp_path / "a.png", "-f", "lavfi", "-i", "testsrc2", "-frames:v", "1")
    assert "still picture" in unreadable(path)


def test_a_file_cut_before_its_index_is_unreadable(tmp_path: Path) -> None:
    path = sample(tmp_path)
    os.truncate(path, path.stat().st_size // 2)
    told = unreadable(path)
    assert told.startswith("'a.mp4' cannot be read as mov")
    assert "broken or truncated" in told


def test_a_container_of_nothing_but_a_head_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"\x00\x00\x00\x10ftypisom\x00\x00\x00\x00")
    assert "'a.mp4'" in unreadable(tmp_path / "a.mp4")


@pytest.mark.parametrize("text", ["#EXTM3U\n{canary}\n", "ffconcat version 1.0\nfile canary.ts\n"])
def test_a_playlist_is_refused_without_opening_what_it_names(tmp_path: Path, text: str) -> None:
    """Opening the pipe would wait for a writer that never comes."""
    os.mkfifo(tmp_path / "canary.ts")
    (tmp_path / "a.mp4").write_text(text.format(canary=tmp_path / "canary.ts"))
    assert "points at other files" in unreadable(tmp_path / "a.mp4")


def test_a_frame_of_too_many_pixels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MediaUnreadable, match="at most 1000 pixels"):
        probe_media(sample(tmp_path), max_pixels=1000)


@pytest.mark.parametrize("name", ["-x.mp4", "a:b.mp4", "http:x.mp4", "a'b.mp4", "%d.mp4", "🎬.mp4"])
def test_any_file_name_can_be_probed(tmp_path: Path, name: str) -> None:
    path = clip(tmp_path / "plain.mp4", seconds=0.2).rename(tmp_path / name)
    assert probe(path).probe.has_video
