"""How a film is brought to its loudness: what was measured, and which filters come next.

A plain gain is tried first: it changes nothing but the level. Where the true peak leaves no room
for it, `loudnorm` with the measured figures comes next, then a gain into a limiter that works on
four times the sampling rate. The first that lands within `TOLERANCE_LU` is taken, else the nearest.

Source: specification V12; the figures behind it are EBU R128 and ITU-R BS.1770.
"""

import re
from dataclasses import dataclass

from reprise.model.media import Loudness

PEAK_MAX_DBTP = -1.5
"""Highest true peak before AAC, which may add up to half a decibel."""
TOLERANCE_LU = 0.5
"""How far from its target a film may be."""
SILENT_LUFS = -69.9
"""The filter says -70.0 of what is silent or too short to measure (under 0.4 s)."""
GAIN_DB_MAX = 40.0
"""Largest gain: beyond it only noise would be raised."""

_NUMBER = r"(-?\d+(?:\.\d+)?|-?inf|-?nan)"
_FIELDS = {
    "integrated": re.compile(rf"\bI:\s*{_NUMBER} LUFS"),
    "threshold": re.compile(rf"\bThreshold:\s*{_NUMBER} LUFS"),
    "range": re.compile(rf"\bLRA:\s*{_NUMBER} LU\b"),
    "peak": re.compile(rf"\bPeak:\s*{_NUMBER} dBFS"),
}


@dataclass(frozen=True)
class Measured:
    """What ebur128 said of a programme."""

    integrated_lufs: float
    """Integrated loudness."""
    threshold_lufs: float
    """Its relative gate."""
    range_lu: float
    """Loudness range."""
    true_peak_dbtp: float
    """True peak; minus infinity for digital silence."""

    @property
    def is_silent(self) -> bool:
        """Answer whether there is nothing to bring to a level."""
        return not self.integrated_lufs > SILENT_LUFS

    def loudness(self) -> Loudness:
        """Return the figures as the model has them."""
        if self.is_silent:
            return Loudness(integrated_lufs=None, range_lu=None, true_peak_dbtp=None)
        return Loudness(
            integrated_lufs=self.integrated_lufs,
            range_lu=self.range_lu,
            true_peak_dbtp=self.true_peak_dbtp,
        )


@dataclass(frozen=True)
class Level:
    """One way to the wanted loudness."""

    name: str
    """`none`, `gain`, `loudnorm` or `limiter`."""
    filters: tuple[tuple[str, dict[str, str]], ...]
    """Filters with their options."""


def parse_summary(text: str) -> Measured | None:
    """Return what the summary of ebur128 says; None when there is none in the text."""
    at = text.rfind("Summary:")
    if at < 0:
        return None
    found = {}
    for name, pattern in _FIELDS.items():
        match = pattern.search(text, at)
        if match is None:
            return None
        found[name] = float(match.group(1))
    return Measured(found["integrated"], found["threshold"], found["range"], found["peak"])


def levels(measured: Measured, target_lufs: float | None) -> tuple[Level, ...]:
    """Return the ways to a target, the least change first."""
    if target_lufs is None or measured.is_silent:
        return (Level("none", ()),)
    gain = max(-GAIN_DB_MAX, min(GAIN_DB_MAX, target_lufs - measured.integrated_lufs))
    linear = Level("gain", (("volume", {"volume": f"{gain:.2f}dB"}),))
    if measured.true_peak_dbtp + gain <= PEAK_MAX_DBTP:
        return (linear,)
    loudnorm = {
        "I": f"{target_lufs:.2f}",
        "TP": f"{PEAK_MAX_DBTP:.2f}",
        "LRA": f"{min(50.0, max(1.0, measured.range_lu + 1)):.2f}",
        "measured_I": f"{measured.integrated_lufs:.2f}",
        "measured_TP": f"{measured.true_peak_dbtp:.2f}",
        "measured_LRA": f"{max(0.0, measured.range_lu):.2f}",
        "measured_thresh": f"{measured.threshold_lufs:.2f}",
        "linear": "true",
    }
    limiter = (
        ("volume", {"volume": f"{gain:.2f}dB"}),
        ("aresample", {"sample_rate": "192000"}),
        (
            "alimiter",
            {
                "limit": f"{10 ** (PEAK_MAX_DBTP / 20):.4f}",
                "level": "0",
                "attack": "1",
                "release": "50",
            },
        ),
    )
    return (Level("loudnorm", (("loudnorm", loudnorm),)), Level("limiter", limiter))


def distance_lu(measured: Measured, target_lufs: float | None) -> float:
    """Return how far a programme is from its target; 0 without one, infinite when it is silent."""
    if target_lufs is None:
        return 0.0
    return float("inf") if measured.is_silent else abs(measured.integrated_lufs - target_lufs)
