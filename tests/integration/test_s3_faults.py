"""What the S3 store answers when the service, the bucket or the key is not as it should be."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from reprise.cache.lookup import StepCache, StepCost, StepIdentity
from reprise.canonical import sha256_hex
from reprise.errors import StoreError, StoreTimeout, StoreUnusable
from reprise.model.result import Artifact, CacheReason, StepResult
from reprise.model.settings import StepCacheSettings
from resources.breaker import BreakerObjectStore, CircuitBreaker
from resources.deadline import DeadlineObjectStore
from resources.memory_entry_store import MemoryEntryStore
from resources.s3_object_store import S3ObjectStore
from tests.s3_server import S3Server


@contextmanager
def silent_port() -> Iterator[str]:
    """A port that takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def elsewhere(endpoint_url: str) -> S3ObjectStore:
    return S3ObjectStore(
        "test-bucket",
        endpoint_url=endpoint_url,
        access_key_id="key",
        secret_access_key="secret",
        head_seconds=0.3,
    )


def test_a_refused_head_is_an_error_and_not_an_absence(s3: S3Server) -> None:
    s3.store().put_bytes("refused/a.txt", b"1")
    refused = replace(s3.store(), access_key_id=s3.limited_key_id)
    for key in ("refused/a.txt", "refused/none.txt"):
        with pytest.raises(StoreUnusable, match=r"s3://test-bucket/refused/.*access is denied"):
            refused.head(key)


def test_a_wrong_secret_is_an_error_that_does_not_show_it(s3: S3Server) -> None:
    wrong = replace(s3.store(), secret_access_key="hunter2-hunter2")
    with pytest.raises(StoreUnusable, match="access is denied") as caught:
        wrong.get_bytes("a.txt")
    assert "hunter2" not in f"{caught.value}{wrong!r}"


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.head("a.txt"),
        lambda store: store.put_bytes("a.txt", b"1"),
        lambda store: store.get_bytes("a.txt"),
        lambda store: list(store.scan("")),
    ],
    ids=["head", "put_bytes", "get_bytes", "scan"],
)
def test_a_missing_bucket_is_an_error_and_not_an_absence(
    s3: S3Server, call: Callable[[S3ObjectStore], object]
) -> None:
    with pytest.raises(StoreUnusable, match=r"bucket.*does not exist"):
        call(replace(s3.store(), bucket="no-such-bucket"))


def test_a_service_that_is_down_is_an_error() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        store = elsewhere(f"http://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(StoreError, match="see whether the store is up"):
            store.head("a.txt")


def test_a_service_that_never_answers_costs_a_head_its_limit() -> None:
    with silent_port() as endpoint_url:
        store = elsewhere(endpoint_url)
        begun = time.monotonic()
        with pytest.raises(StoreTimeout, match=r"object 's3://test-bucket/a\.txt'"):
            store.head("a.txt")
        assert 0.3 <= time.monotonic() - begun < 10


class Failing(BaseHTTPRequestHandler):
    """A service in trouble: 500 to everything."""

    def do_HEAD(self) -> None:
        self.send_response(500)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.do_HEAD()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def failing_service() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Failing)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_object_store_that_answers_500_costs_the_cache_misses_and_no_row() -> None:
    """Eleven hits whose artifacts cannot be asked for: each step runs, and each entry stays."""
    head_seconds = 1.0
    entries = MemoryEntryStore()
    artifact = Artifact(name="a.mp4", storage_key="a.mp4", size_bytes=4)
    names = [f"step {number}" for number in range(11)]
    steps = [StepIdentity("p", "w", n, "agent", None, sha256_hex(n), {"a": n}) for n in names]
    with failing_service() as endpoint_url:
        objects = BreakerObjectStore(
            DeadlineObjectStore(elsewhere(endpoint_url), head_seconds=head_seconds),
            CircuitBreaker("the object store"),
        )
        cache = StepCache(entries, objects.head, StepCacheSettings(), lambda: datetime.now(UTC))
        for step in steps:
            result = StepResult(output="o", artifacts=(artifact,))
            assert cache.store(step, result, StepCost("run", 1.0)) is None

        begun = time.monotonic()
        found = [cache.lookup(step) for step in steps]
        seconds = time.monotonic() - begun

    assert {lookup.reason for lookup in found} == {CacheReason.ARTIFACT_UNCHECKED}
    assert [entries.tombstone("p", step.cache_key) for step in steps] == [None] * 11
    assert len(entries) == 11
    # What a loaded machine needs to make the client aside.
    assert seconds < head_seconds + 5.0


def test_a_failed_upload_leaves_the_earlier_object(s3: S3Server, tmp_path: Path) -> None:
    store = s3.store()
    store.put_bytes("kept/a.txt", b"earlier")
    source = tmp_path / "new.txt"
    source.write_bytes(b"new")
    with pytest.raises(StoreUnusable):
        replace(store, access_key_id=s3.limited_key_id).put_file("kept/a.txt", source)
    assert store.get_bytes("kept/a.txt") == b"earlier"


def test_settings_that_make_no_client_are_named() -> None:
    with pytest.raises(StoreUnusable, match="S3 settings"):
        elsewhere("not an address").head("a.txt")


def test_the_url_is_the_address_in_the_bucket() -> None:
    assert S3ObjectStore("films", prefix="x/").url("a/b.mp4") == "s3://films/x/a/b.mp4"
