"""How a film is brought to its loudness: what was measured, and which filters come next.

A plain gain is tried first: it changes nothing but the level. Where the true peak leaves no room
for it, `loudnorm` with the measured figures comes next, then a gain into a limiter that works on
four times the sampling rate. What the limiter takes away is added to its gain, a few times and up
to `EXTRA_DB_MAX`. The first that lands within `AIM_LU` is taken, else the nearest.

Source: specification V12; the figures behind it are EBU R128 and ITU-R BS.1770.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from reprise.model.media import Loudness

LEVELLING_REVISION = "2"
"""Raised when the same sound is to be brought to its loudness another way."""
PEAK_MAX_DBTP = -1.5
"""Highest true peak before AAC, which may add up to half a decibel."""
TOLERANCE_LU = 0.5
"""How far from its target a film may be."""
AIM_LU = 0.3
"""How near its target the sound is brought before AAC, which moves it by about a tenth."""
EXTRA_DB_MAX = 6.0
"""Most that is added to the gain into the limiter: beyond it, speech sounds squashed."""
ROUNDS_MAX = 4
"""Most times that the gain into the limiter is changed."""
STEP_DB_MIN = 0.1
"""A smaller change of the gain is not worth a round."""
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
    gain_db: float = 0.0
    """Gain in front of the filters, where they begin with one."""


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
    return (Level("loudnorm", (("loudnorm", loudnorm),)), _limiter(gain))


def harder(
    measured: Measured, target_lufs: float | None, tried: Sequence[tuple[Level, Measured]]
) -> Level | None:
    """Return the limiter with more gain, from what the earlier ways gave; None to leave it there.

    Args:
        measured: The sound as it is.
        target_lufs: Wanted loudness.
        tried: The ways so far with what each gave, in order.
    """
    limited = [(way.gain_db, result) for way, result in tried if way.name == "limiter"]
    if target_lufs is None or not 0 < len(limited) <= ROUNDS_MAX:
        return None
    gain, result = limited[-1]
    missing = target_lufs - result.integrated_lufs
    # The nearer to its ceiling a sound is, the less of a decibel of gain arrives.
    arrives = 1.0
    if len(limited) > 1 and gain != limited[-2][0]:
        gained = result.integrated_lufs - limited[-2][1].integrated_lufs
        arrives = min(1.0, max(0.25, gained / (gain - limited[-2][0])))
    most = target_lufs - measured.integrated_lufs + EXTRA_DB_MAX
    wanted = min(gain + missing / arrives, most, GAIN_DB_MAX)
    return _limiter(wanted) if abs(wanted - gain) >= STEP_DB_MIN else None


def _limiter(gain_db: float) -> Level:
    limiter = (
        ("volume", {"volume": f"{gain_db:.2f}dB"}),
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
    return Level("limiter", limiter, gain_db)


def distance_lu(measured: Measured, target_lufs: float | None) -> float:
    """Return how far a programme is from its target; 0 without one, infinite when it is silent."""
    if target_lufs is None:
        return 0.0
    return float("inf") if measured.is_silent else abs(measured.integrated_lufs - target_lufs)
