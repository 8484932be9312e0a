"""The part of a footage analysis that a search needs: what was said, when, in which file.

An analysis holds words and shots by the thousand; each run takes this from it, also from one that
came out of the cache, so the rest is passed over unread.

Source: specification W8.
"""

from pydantic import BaseModel, ConfigDict


class _Part(BaseModel):
    """A part of an analysis; what is not named here is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)


class SaidSentence(_Part):
    """A sentence that was said."""

    text: str
    """Its words."""
    start_seconds: float
    """When it begins."""
    end_seconds: float
    """When it ends."""


class HeardTranscript(_Part):
    """What is said in a source."""

    sentences: tuple[SaidSentence, ...]
    """By rising time."""


class HeardSource(_Part):
    """One source of an analysis."""

    file_id: str
    """The project file."""
    content_digest: str
    """SHA-256 of the bytes that were analysed."""
    has_audio: bool
    """Has it a sound track."""
    transcript: HeardTranscript | None
    """Null when speech was not asked for or there is no sound track."""


class HeardAnalysis(_Part):
    """What a VideoAnalyze step heard."""

    sources: tuple[HeardSource, ...]
    """Its sources."""
