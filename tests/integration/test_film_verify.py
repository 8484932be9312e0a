"""A film that is not what it should be does not pass."""

from fractions import Fraction
from pathlib import Path

import pytest

from reprise.errors import Cancelled, MediaError
from reprise.media.timeline import FilmClock, place_cuts
from reprise.model.render import RenderCut
from resources.film_verify import decoded_frames, packet_count, verify_film
from tests.media_files import make_media, never_cancelled

TONE = ("-f", "lavfi", "-i", "sine=f=440:r=48000")


def unit(path: Path, frames: int, colour: str) -> Path:
    """Make a unit as the renderer does; another colour gives other packets."""
    return make_media(
        path,
        *("-f", "lavfi", "-i", f"testsrc2=s=64x36:r=25,hue=h={colour}", "-frames:v", str(frames)),
        *("-c:v", "libx264", "-preset", "ultrafast", "-g", "50", "-pix_fmt", "yuv420p"),
        *("-threads", "1", "-video_track_timescale", "12800"),
    )


def joined(path: Path, parts: list[Path], *, seconds: float) -> Path:
    listing = path.with_suffix(".txt")
    listing.write_text("ffconcat version 1.0\n" + "".join(f"file {p.name}\n" for p in parts))
    return make_media(
        path,
        *("-f", "concat", "-auto_convert", "0", "-i", f"file:{listing}", "-t", str(seconds)),
        *(*TONE, "-map", "0:v", "-map", "1:a", "-c:v", "copy", "-c:a", "aac"),
        *("-video_track_timescale", "12800", "-t", str(seconds)),
    )


@pytest.fixture
def units(tmp_path: Path) -> list[Path]:
    return [unit(tmp_path / "a.mp4", 30, "0"), unit(tmp_path / "b.mp4", 20, "90")]


def clock(*lengths: int) -> FilmClock:
    cuts = [RenderCut(source_id="v1", start_frame=0, end_frame=length) for length in lengths]
    return place_cuts(cuts, {"v1": Fraction(25)}, Fraction(25))


def test_a_film_of_its_units_passes(tmp_path: Path, units: list[Path]) -> None:
    film = joined(tmp_path / "film.mp4", units, seconds=2)
    facts = verify_film(film, units, clock(30, 20))
    assert facts.frame_count == 50
    assert abs(facts.sample_count - 96_000) <= 1024


def test_units_in_another_order_are_found(tmp_path: Path, units: list[Path]) -> None:
    film = joined(tmp_path / "film.mp4", units[::-1], seconds=2)
    with pytest.raises(MediaError, match="differs from its unit in cut 1, packet 1"):
        verify_film(film, units, clock(30, 20))


def test_a_unit_too_many_is_found(tmp_path: Path, units: list[Path]) -> None:
    film = joined(tmp_path / "film.mp4", [*units, units[0]], seconds=3.2)
    with pytest.raises(MediaError, match="has 30 frames more than its 50"):
        verify_film(film, units, clock(30, 20))


def test_a_unit_of_another_length_is_found(tmp_path: Path, units: list[Path]) -> None:
    film = joined(tmp_path / "film.mp4", units, seconds=2)
    with pytest.raises(MediaError, match="Cut 1 has 30 frames instead of 31"):
        verify_film(film, units, clock(31, 20))


def test_sound_of_another_length_is_found(tmp_path: Path, units: list[Path]) -> None:
    listing = tmp_path / "list.txt"
    listing.write_text("ffconcat version 1.0\n" + "".join(f"file {p.name}\n" for p in units))
    film = make_media(
        tmp_path / "film.mp4",
        *("-f", "concat", "-auto_convert", "0", "-i", f"file:{listing}", "-t", "1.5", *TONE),
        *("-map", "0:v", "-map", "1:a", "-c:v", "copy", "-c:a", "aac"),
        *("-video_track_timescale", "12800"),
    )
    with pytest.raises(MediaError, match="sound has 72"):
        verify_film(film, units, clock(30, 20))


def test_what_is_no_film_is_found(tmp_path: Path, units: list[Path]) -> None:
    broken = tmp_path / "film.mp4"
    broken.write_bytes(units[0].read_bytes()[:300])
    with pytest.raises(MediaError, match="does not read back"):
        verify_film(broken, units, clock(30, 20))
    with pytest.raises(MediaError, match=r"The render unit 'film.mp4' does not decode"):
        decoded_frames(broken, never_cancelled)
    assert packet_count(broken) == 0
    with pytest.raises(Cancelled):
        decoded_frames(units[0], lambda: True)
    assert packet_count(units[0]) == decoded_frames(units[0], never_cancelled) == 30
