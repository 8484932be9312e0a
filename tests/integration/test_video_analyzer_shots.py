"""How many of the known transitions of generated clips are found; the figures are those of V6."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from reprise.model.measures import AnalyzeOptions
from resources.ffmpeg import FfmpegLocator
from resources.video_analyzer import FfmpegVideoAnalyzer
from tests.media_files import make_media, never_cancelled, no_progress

RATE = 25
SECONDS = 2.0
LOOKS = (
    "mandelbrot=s=320x180:r=25:start_scale=0.5",
    "testsrc2=s=320x180:r=25",
    "gradients=s=320x180:r=25:c0=red:c1=blue:seed=1:speed=0.02",
    "mandelbrot=s=320x180:r=25:start_scale=1.5,hue=h=120",
    "smptehdbars=s=480x180:r=25,crop=320:180:x='n'",
    "life=s=80x45:r=25:seed=3:ratio=0.3:life_color=0xE0D020:death_color=0x203060,scale=320:180",
    "mandelbrot=s=640x360:r=25:start_scale=0.1,negate,crop=320:180:x='n':y=40",
    "testsrc2=s=320x180:r=25,hue=h=200:s=0.5,hflip",
    "gradients=s=320x180:r=25:c0=green:c1=white:seed=5:speed=0.02",
)


@dataclass(frozen=True)
class Made:
    """A clip, with the frames of its cuts and of its dissolves."""

    path: Path
    cuts: list[int]
    dissolves: list[tuple[int, int]]


def made(target: Path, joins: list[float], looks: list[int]) -> Made:
    """Join looks of two seconds each; a join of 0 is a cut, else the seconds of a dissolve."""
    chains = [
        f"{LOOKS[look]},trim=duration={SECONDS},setpts=PTS-STARTPTS,setsar=1,format=yuv420p,"
        f"noise=alls=6:allf=t:all_seed={index},fps={RATE},settb=1/{RATE}[s{index}]"
        for index, look in enumerate(looks)
    ]
    cuts: list[int] = []
    dissolves: list[tuple[int, int]] = []
    length = SECONDS
    joined = "s0"
    for index, seconds in enumerate(joins, start=1):
        pair = f"[{joined}][s{index}]"
        if seconds == 0:
            cuts.append(round(length * RATE))
            chains.append(f"{pair}concat=n=2:v=1:a=0,settb=1/{RATE}[j{index}]")
        else:
            dissolves.append((round((length - seconds) * RATE), round(length * RATE)))
            chains.append(f"{pair}xfade=duration={seconds}:offset={length - seconds}[j{index}]")
        length += SECONDS - seconds
        joined = f"j{index}"
    make_media(
        target,
        *("-filter_complex", ";".join(chains), "-map", f"[{joined}]"),
        *("-c:v", "libx264", "-preset", "veryfast", "-crf", "23", "-pix_fmt", "yuv420p"),
    )
    return Made(target, cuts, dissolves)


def starts(path: Path) -> list[int]:
    analyzer = FfmpegVideoAnalyzer(FfmpegLocator(None, None))
    measures = analyzer.analyze(
        path, AnalyzeOptions(), path.parent, progress=no_progress, cancelled=never_cancelled
    )
    return [shot.start_frame for shot in measures.shots[1:]]


def test_hard_cuts_are_found_within_one_frame(tmp_path: Path) -> None:
    looks = [0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 4, 2, 6]
    clip = made(tmp_path / "cuts.mp4", [0.0] * 12, looks)
    found = starts(clip.path)
    assert len(found) == 12
    assert all(abs(one - cut) <= 1 for one, cut in zip(found, clip.cuts, strict=True))


def test_dissolves_are_found_with_four_fifths_precision_and_recall(tmp_path: Path) -> None:
    looks = [0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 3]
    joins = [0.4, 0.6, 0.8, 1.0, 0.48, 0.6, 1.0, 0.8, 0.6, 0.4]
    clip = made(tmp_path / "dissolves.mp4", joins, looks)
    found = starts(clip.path)
    hit = [any(start - 2 <= one <= end + 2 for one in found) for start, end in clip.dissolves]
    right = [any(start - 2 <= one <= end + 2 for start, end in clip.dissolves) for one in found]
    assert sum(hit) / len(hit) >= 0.8
    assert sum(right) / len(right) >= 0.8


def test_cuts_and_dissolves_are_found_beside_each_other(tmp_path: Path) -> None:
    clip = made(tmp_path / "both.mp4", [0.0, 0.6, 0.0, 0.8, 0.0], [1, 3, 4, 7, 8, 0])
    found = starts(clip.path)
    assert all(any(abs(one - cut) <= 1 for one in found) for cut in clip.cuts)
    assert all(any(start <= one <= end for one in found) for start, end in clip.dissolves)
    assert len(found) == 5


@pytest.mark.parametrize("flash_frames", [1, 2, 3])
def test_flashes_give_no_cut(tmp_path: Path, flash_frames: int) -> None:
    flashes = "+".join(
        f"between(n,{start},{start + flash_frames - 1})" for start in (20, 47, 80, 111)
    )
    path = make_media(
        tmp_path / "a.mp4",
        *("-f", "lavfi", "-i", f"{LOOKS[0]},noise=alls=6:allf=t,trim=duration=6"),
        *("-vf", f"lutyuv=y='val*0.3+160':enable='{flashes}',format=yuv420p"),
        *("-c:v", "libx264", "-preset", "veryfast"),
    )
    assert starts(path) == []


def test_whip_pans_give_no_cut(tmp_path: Path) -> None:
    sway = "240*(1-cos(2*PI*clip(mod(n,50)-20,0,14)/14))"
    path = make_media(
        tmp_path / "a.mp4",
        *("-f", "lavfi", "-i", "mandelbrot=s=1280x360:r=25:start_scale=0.3:end_scale=0.3"),
        *("-t", "6", "-vf", f"crop=320:180:x='{sway}':y=80,format=yuv420p"),
        *("-c:v", "libx264", "-preset", "veryfast"),
    )
    assert starts(path) == []
