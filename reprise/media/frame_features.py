"""What is measured of each decoded frame, on planes of 192 by 108 pixels.

ffmpeg scales the picture and sends limited-range yuv420p; `measure` turns a batch of frames into a
few numbers each and a small signature. Shots, spans and figures are found in these alone
(`reprise.media.shots`, `reprise.media.spans`), so that memory hardly grows with the length.

Source: specification V5.
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

WIDTH = 192
"""Width of a measured frame."""
HEIGHT = 108
"""Height of a measured frame."""
FRAME_BYTES = WIDTH * HEIGHT * 3 // 2
"""Bytes of a frame: the luma plane and two of a quarter of its size."""
BLACK_LUMA = 38
"""A pixel up to this limited-range value is black: 10 % above black, as in ffmpeg's blackdetect."""

_GRID = 6
_BLOCK = 12
_BINS = 32
SIGNATURE_SIZE = (WIDTH // _GRID) * (HEIGHT // _GRID) * 3 // 2
"""Values of a signature: 32 by 18 of luma, then 16 by 9 of each chroma."""

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class FrameFigures:
    """Numbers of consecutive frames, each of shape (frames,); those of the first frame are 0."""

    score: Floats
    """How different it is from the frame before: luma, chroma and histogram together."""
    motion: Floats
    """Mean absolute luma change from the frame before, 0 to 255."""
    motion_weight: Floats
    """Sum of the block changes that are above noise."""
    motion_moment: Floats
    """The same, each times its place across (0 left, 1 right)."""
    luma: Floats
    """Mean luma, 0 to 255 (full range)."""
    saturation: Floats
    """Mean saturation, 0 to 1."""
    clipped: Floats
    """Share of pixels at either end of the range."""
    black: Floats
    """Share of black pixels."""


@dataclass(frozen=True)
class Measured:
    """A batch's figures and signatures."""

    figures: FrameFigures
    """Numbers of each frame."""
    signatures: Bytes
    """Means of 6 by 6 blocks, shape (frames, SIGNATURE_SIZE): what shots are found in."""


def planes(data: bytes | bytearray | memoryview) -> Bytes:
    """Return the frames in these bytes, shape (frames, FRAME_BYTES); a torn last one is left."""
    frames = len(data) // FRAME_BYTES
    return np.frombuffer(data, np.uint8, frames * FRAME_BYTES).reshape(frames, FRAME_BYTES)


def measure(frames: Bytes, previous: Bytes | None) -> Measured:
    """Measure consecutive frames.

    Args:
        frames: Shape (frames, FRAME_BYTES), limited-range yuv420p.
        previous: The frame before them, shape (FRAME_BYTES,); None at the start.
    """
    count = len(frames)
    with_previous = np.concatenate((frames[:1] if previous is None else previous[None], frames))
    luma_size = WIDTH * HEIGHT
    changes = _absolute_difference(with_previous[1:], with_previous[:-1])
    luma = frames[:, :luma_size]
    luma_changes = changes[:, :luma_size]
    blocks = _block_sums(luma_changes.reshape(count, HEIGHT, WIDTH), _BLOCK)
    motion = blocks.sum(axis=(1, 2)) / luma_size
    chroma_motion = changes[:, luma_size:].sum(axis=1, dtype=np.uint32) / (luma_size / 2)
    above_noise = np.maximum(blocks.sum(axis=1) / (_BLOCK * HEIGHT) - 1.0, 0.0)
    across = (np.arange(WIDTH // _BLOCK) + 0.5) / (WIDTH // _BLOCK)
    # In the dark a small change can move a whole histogram to the next bin.
    redistribution = np.minimum(25.0 * _histogram_changes(with_previous), 3.0 * motion)
    score = 0.5 * motion + 0.5 * chroma_motion + redistribution
    if previous is None:
        score[0] = 0.0
    figures = FrameFigures(
        score=score.astype(np.float32),
        motion=(motion * (255 / 219)).astype(np.float32),
        motion_weight=above_noise.sum(axis=1).astype(np.float32),
        motion_moment=(above_noise @ across).astype(np.float32),
        luma=_full_range(luma.sum(axis=1, dtype=np.uint32) / luma_size),
        saturation=_saturation(frames[:, luma_size:]),
        clipped=((luma <= 17) | (luma >= 234)).mean(axis=1, dtype=np.float32),
        black=(luma <= BLACK_LUMA).mean(axis=1, dtype=np.float32),
    )
    return Measured(figures, _signatures(frames))


def join_figures(parts: list[FrameFigures]) -> FrameFigures:
    """Join the figures of batches that follow each other."""
    return FrameFigures(
        **{
            field.name: np.concatenate(
                [getattr(part, field.name) for part in parts] or [np.zeros(0, np.float32)]
            )
            for field in fields(FrameFigures)
        }
    )


def _absolute_difference(left: Bytes, right: Bytes) -> Bytes:
    # Performance: stays in bytes; a detour through int16 takes four times as long.
    difference: Bytes = np.maximum(left, right) - np.minimum(left, right)
    return difference


def _block_sums(plane: Bytes, block: int) -> NDArray[np.float32]:
    """Return sums of square blocks; planes of shape (frames, height, width)."""
    count, height, width = plane.shape
    rows = plane.reshape(count, height // block, block, width).sum(axis=2, dtype=np.uint16)
    shape = (count, height // block, width // block, block)
    sums: NDArray[np.float32] = rows.reshape(shape).sum(axis=3, dtype=np.uint32).astype(np.float32)
    return sums


def _signatures(frames: Bytes) -> Bytes:
    count = len(frames)
    luma_size = WIDTH * HEIGHT
    parts = [_block_sums(frames[:, :luma_size].reshape(count, HEIGHT, WIDTH), _GRID)]
    for start in (luma_size, luma_size * 5 // 4):
        plane = frames[:, start : start + luma_size // 4]
        parts.append(_block_sums(plane.reshape(count, HEIGHT // 2, WIDTH // 2), _GRID))
    sums = np.concatenate([part.reshape(count, -1) for part in parts], axis=1)
    return np.rint(sums / (_GRID * _GRID)).astype(np.uint8)


def _histogram_changes(frames: Bytes) -> NDArray[np.float64]:
    """Return the L1 distance of each frame's luma histogram from that before, 0 to 2."""
    count = len(frames)
    luma = frames[:, : WIDTH * HEIGHT].reshape(count, HEIGHT, WIDTH)[:, ::2, ::2]
    offsets = (np.arange(count) * _BINS).astype(np.int32)
    bins = (luma >> 3).astype(np.int32) + offsets[:, None, None]
    histograms = np.bincount(bins.ravel(), minlength=count * _BINS).reshape(count, _BINS)
    distances: NDArray[np.float64] = np.abs(np.diff(histograms, axis=0)).sum(axis=1) / (
        luma[0].size
    )
    return distances


def _full_range(luma: NDArray[np.float64]) -> Floats:
    return np.clip((luma - 16) * (255 / 219), 0, 255).astype(np.float32)


def _saturation(chroma: Bytes) -> Floats:
    """Return the mean distance from grey; 1 is the edge of the chroma range."""
    centred = chroma.reshape(len(chroma), 2, -1)[:, :, ::2].astype(np.float32) - 128
    distances = np.minimum(np.hypot(centred[:, 0], centred[:, 1]) / 112, 1)
    return np.asarray(distances.mean(axis=1), np.float32)
