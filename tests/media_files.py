"""Small media files for tests, made with ffmpeg's own sources; nothing is downloaded or stored.

path = make_media(tmp_path / "a.mp4", "-f", "lavfi", "-i", "testsrc2=d=2")
path = clip(tmp_path / "a.mp4", seconds=2.0)
path = scenes(tmp_path / "b.mp4", [("mandelbrot", 1.2), ("color=c=black", 0.8)])
path = stamped(tmp_path / "c.mp4", frames=48, rate="24000/1001")   # frame n carries n
frame_numbers(path) == list(range(48))
"""

import functools
from collections.abc import Sequence
from pathlib import Path

import av
import numpy as np

from resources.ffmpeg import FfmpegBinary, find_ffmpeg
from resources.ffmpeg_runner import FfmpegRunner

_BITS = 16
_ENCODER = (
    *("-c:v", "libx264", "-preset", "ultrafast", "-crf", "12", "-pix_fmt", "yuv420p"),
    *("-c:a", "aac", "-b:a", "96k", "-threads", "2"),
)


@functools.cache
def ffmpeg_binary() -> FfmpegBinary:
    """Return the ffmpeg that the tests use."""
    return find_ffmpeg(None, None)


def no_progress(_text: str, _share: float | None) -> None:
    """Ignore progress."""


def never_cancelled() -> bool:
    """Never stop."""
    return False


def make_media(target: Path, *args: str) -> Path:
    """Run ffmpeg with these arguments and `target` as its last output; returns the target."""
    FfmpegRunner(ffmpeg_binary()).run(
        [*args, f"file:{target.absolute()}"],
        cwd=target.parent,
        progress=no_progress,
        cancelled=never_cancelled,
        timeout_seconds=120.0,
        purpose=f"making {target.name!r}",
    )
    return target


def clip(
    target: Path,
    *,
    seconds: float = 2.0,
    rate: str = "25",
    size: str = "320x180",
    sound: str | None = "sine=f=440:r=48000",
) -> Path:
    """Make a moving test picture with a tone.

    Args:
        target: The file; its extension chooses the container.
        seconds: Length.
        rate: Rational frames a second.
        size: Width and height, such as `320x180`.
        sound: A lavfi source; None makes a file without a sound track.
    """
    inputs = ["-f", "lavfi", "-i", f"testsrc2=s={size}:r={rate}"]
    if sound is not None:
        inputs += ["-f", "lavfi", "-i", sound]
    return make_media(target, *inputs, "-t", str(seconds), *_ENCODER)


def scenes(
    target: Path,
    parts: Sequence[tuple[str, float]],
    *,
    rate: str = "25",
    size: str = "320x180",
    sound: str | None = None,
) -> Path:
    """Join lavfi pictures with hard cuts.

    Args:
        target: The file.
        parts: lavfi source (`testsrc2`, `color=c=red`, `mandelbrot`, or one with filters after a
            comma) and its length in seconds.
        rate: Rational frames a second.
        size: Width and height.
        sound: A lavfi source that lasts as long as the picture; None for none.
    """
    chains = []
    for index, (source, seconds) in enumerate(parts):
        first, comma, rest = source.partition(",")
        sized = f"{first}{':' if '=' in first else '='}s={size}:r={rate}"
        chains.append(
            f"{sized}{comma}{rest},trim=duration={seconds},setpts=PTS-STARTPTS,setsar=1,"
            f"format=yuv420p[v{index}]"
        )
    joined = "".join(f"[v{index}]" for index in range(len(parts)))
    graph = ";".join(chains) + f";{joined}concat=n={len(parts)}:v=1:a=0[v]"
    args = ["-filter_complex", graph]
    if sound is not None:
        args = ["-f", "lavfi", "-i", sound, *args, "-map", "0:a"]
    total = sum(seconds for _, seconds in parts)
    return make_media(target, *args, "-map", "[v]", "-t", f"{total:.6f}", *_ENCODER)


def stamped(
    target: Path, *, frames: int, rate: str, size: str = "320x180", sound: str | None = None
) -> Path:
    """Make a clip whose frame n shows n as 16 black and white bars; see `frame_numbers`."""
    bars = f"geq=lum='if(mod(floor(N/pow(2,floor(X*{_BITS}/W))),2),235,16)':cb=128:cr=128"
    inputs = ["-f", "lavfi", "-i", f"color=c=gray:s={size}:r={rate},{bars}"]
    if sound is not None:
        inputs += ["-f", "lavfi", "-i", sound, "-shortest"]
    return make_media(target, *inputs, "-frames:v", str(frames), *_ENCODER)


def frame_numbers(path: Path) -> list[int]:
    """Read the numbers that `stamped` put into the frames, in the order of presentation."""
    numbers = []
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            luma = frame.to_ndarray(format="gray")
            columns = (np.arange(_BITS) * 2 + 1) * luma.shape[1] // (2 * _BITS)
            bits = luma[luma.shape[0] // 2, columns] > 128
            numbers.append(int((bits.astype(np.int64) << np.arange(_BITS)).sum()))
    return numbers
