"""Cache entries for the tests of entry stores."""

from datetime import UTC, datetime, timedelta

from reprise.canonical import sha256_hex
from reprise.model.cache import CacheEntry
from reprise.model.result import Artifact, Usage

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
WEEK = timedelta(hours=168)


def key_of(name: str) -> str:
    """A key of 64 hexadecimal digits."""
    return sha256_hex(name)


def entry(name: str = "a", *, created_at: datetime = NOW, **changes: object) -> CacheEntry:
    payload = f'{{"output":"{name} é 🎬"}}'
    plain = CacheEntry(
        project_id="p1",
        cache_key=key_of(name),
        schema_version=1,
        workflow_id="quick-win-promo",
        step_label="audience",
        step_type="agent",
        agent_id="audience-analyst",
        run_id="run-1",
        created_at=created_at,
        expires_at=created_at + WEEK,
        payload=payload,
        payload_digest=sha256_hex(payload),
        artifacts=(
            Artifact(name="a.mp4", storage_key="projects/p1/a.mp4", size_bytes=7, etag="7-1"),
            Artifact(name="a.srt", storage_key="projects/p1/a.srt", size_bytes=0),
        ),
        field_digests={"resolved_input": key_of("input"), "model": key_of("model")},
        usage=Usage(input_uncached=1200, output=300, calls=2, cost_micros=4_500),
        seconds=12.75,
    )
    if "payload" in changes:
        changes.setdefault("payload_digest", sha256_hex(str(changes["payload"])))
    return CacheEntry.model_validate({**plain.model_dump(), **changes})
