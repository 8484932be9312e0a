"""What the SQLite stores do with a broken, foreign, full, locked or vanished file.

The entry store's file can be rebuilt, so a damaged one is set aside; history and projects cannot,
so theirs is left and named. Disk full and read-only are made in a mount namespace of a child's own,
because mode bits do not bind root.
"""

import json
import logging
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reprise.errors import StoreTimeout, StoreUnusable
from reprise.model.cache import EntryStats
from reprise.model.result import CacheReason
from resources.micros import to_micros
from resources.sqlite import CACHE_APPLICATION_ID
from resources.sqlite_entry_store import SqliteEntryStore
from resources.sqlite_history import SqliteHistory
from resources.sqlite_projects import SqliteProjectRegistry
from tests.cache_entries import NOW, entry, key_of
from tests.child_process import can_mount, run_python, start_python

MAKERS: dict[str, Callable[[Path], object]] = {
    "entries": SqliteEntryStore,
    "history": SqliteHistory,
    "projects": SqliteProjectRegistry,
}
make_store = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.iterdir()
        if path.is_file()
    }


def foreign_database(path: Path, *, wal: bool) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    if wal:
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE theirs (a)")
    connection.execute("INSERT INTO theirs VALUES ('precious')")
    connection.close()


@make_store
@pytest.mark.parametrize("kind", ["text", "garbage", "short", "database", "wal database"])
def test_a_file_that_is_not_ours_is_refused_and_not_touched(
    tmp_path: Path, make: Callable[[Path], object], kind: str
) -> None:
    path = tmp_path / "data"
    if "database" in kind:
        foreign_database(path, wal=kind.startswith("wal"))
    else:
        texts = {"text": b"dear diary\n" * 500, "garbage": b"\x00\xff" * 5000, "short": b"x"}
        path.write_bytes(texts[kind])
    before = contents(tmp_path)
    with pytest.raises(StoreUnusable, match="left as it is"):
        make(path)
    assert contents(tmp_path) == before


def test_a_foreign_file_that_appears_later_is_refused_at_the_first_use(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    store = SqliteEntryStore(path)
    foreign_database(path, wal=False)
    before = contents(tmp_path)
    with pytest.raises(StoreUnusable, match="left as it is"):
        store.put(entry())
    with pytest.raises(StoreUnusable, match="left as it is"):
        store.get("p1", key_of("a"), now=NOW)
    assert contents(tmp_path) == before


def test_the_stores_do_not_take_each_others_files(tmp_path: Path) -> None:
    SqliteEntryStore(tmp_path / "cache.sqlite").put(entry())
    SqliteProjectRegistry(tmp_path / "metadata.sqlite").add_project("p1", now=NOW)
    with pytest.raises(StoreUnusable):
        SqliteHistory(tmp_path / "cache.sqlite")
    with pytest.raises(StoreUnusable):
        SqliteEntryStore(tmp_path / "metadata.sqlite")


@make_store
def test_a_folder_in_the_way_is_named(tmp_path: Path, make: Callable[[Path], object]) -> None:
    (tmp_path / "data").mkdir()
    with pytest.raises(StoreUnusable, match=r"data'.*is a folder"):
        make(tmp_path / "data")


def test_a_file_where_the_folder_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_bytes(b"")
    store = SqliteEntryStore(tmp_path / "home" / "cache.sqlite")
    assert store.get("p1", key_of("a"), now=NOW) is None
    with pytest.raises(StoreUnusable, match="folder cannot be made"):
        store.put(entry())


@make_store
def test_making_and_reading_a_store_makes_no_file(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    store = make(tmp_path / "new" / "data")
    if isinstance(store, SqliteEntryStore):
        assert store.get("p1", key_of("a"), now=NOW) is None
    elif isinstance(store, SqliteHistory):
        assert store.of_run("run") == []
    elif isinstance(store, SqliteProjectRegistry):
        assert store.projects() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wiped", [slice(0, 16), slice(100, 4096), slice(4096, None)])
def test_a_damaged_cache_is_set_aside_once_and_a_fresh_one_works(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, wiped: slice
) -> None:
    path = tmp_path / "cache.sqlite"
    store = SqliteEntryStore(path)
    for index in range(50):
        store.put(entry(f"{index}", payload="x" * 2000))
    store.close()
    data = bytearray(path.read_bytes())
    data[wiped] = b"\xff" * len(data[wiped])
    path.write_bytes(data)
    damaged = path.read_bytes()

    store = SqliteEntryStore(path)
    with caplog.at_level(logging.WARNING):
        assert store.get("p1", key_of("7"), now=NOW) is None
        store.put(entry())
    assert store.get("p1", key_of("a"), now=NOW) == entry()
    assert (tmp_path / "cache.sqlite.damaged").read_bytes()[4096:] == damaged[4096:]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "is damaged" in caplog.text


def test_a_truncated_cache_is_set_aside_and_a_fresh_one_works(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    store = SqliteEntryStore(path)
    for index in range(50):
        store.put(entry(f"{index}", payload="x" * 2000))
    store.close()
    os.truncate(path, 5000)
    store = SqliteEntryStore(path)
    store.put(entry())
    assert store.get("p1", key_of("a"), now=NOW) == entry()
    assert (tmp_path / "cache.sqlite.damaged").stat().st_size == 5000


def test_damage_under_a_running_process_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    running = SqliteEntryStore(path)
    running.put(entry())
    other = SqliteEntryStore(path)
    assert len(other) == 1
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").rename(tmp_path / f"elsewhere{suffix}")
    assert running.get("p1", key_of("a"), now=NOW) is None
    running.put(entry("b"))
    assert other.get("p1", key_of("b"), now=NOW) == entry("b")


@pytest.mark.parametrize("make", [SqliteHistory, SqliteProjectRegistry])
def test_a_damaged_file_of_metadata_is_named_and_left(
    tmp_path: Path, make: Callable[[Path], SqliteHistory | SqliteProjectRegistry]
) -> None:
    path = tmp_path / "metadata.sqlite"
    registry = SqliteProjectRegistry(path)
    registry.add_project("p1", now=NOW)
    registry.close()
    data = bytearray(path.read_bytes())
    data[100:] = b"\xff" * len(data[100:])
    path.write_bytes(data)
    store = make(path)
    with pytest.raises(StoreUnusable, match=r"metadata\.sqlite.*restore it from a backup"):
        store.projects() if isinstance(store, SqliteProjectRegistry) else store.of_run("r")
    assert path.read_bytes() == bytes(data)
    assert not (tmp_path / "metadata.sqlite.damaged").exists()


def test_a_file_of_a_newer_version_is_refused_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    store = SqliteEntryStore(path)
    store.put(entry())
    store.close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("UPDATE component SET version = 99")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreUnusable, match=r"newer Reprise.*schema 99"):
        SqliteEntryStore(path).get("p1", key_of("a"), now=NOW)
    assert path.read_bytes() == before


def test_a_row_edited_by_hand_is_removed_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    store = SqliteEntryStore(path)
    store.put(entry())
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("UPDATE entry SET artifacts = '[{\"oops\": '")
    connection.close()
    assert store.get("p1", key_of("a"), now=NOW) is None
    assert store.tombstone("p1", key_of("a")) is CacheReason.PAYLOAD_DAMAGED
    assert len(store) == 0


def test_a_writer_waits_no_longer_than_told_for_a_lock_that_is_held(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    store = SqliteEntryStore(path, busy_seconds=0.2)
    store.put(entry())
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    begun = time.monotonic()
    with pytest.raises(StoreTimeout, match="another process held it"):
        store.put(entry("b"))
    assert 0.1 < time.monotonic() - begun < 5
    assert store.get("p1", key_of("a"), now=NOW) == entry()
    holder.execute("ROLLBACK")
    holder.close()
    store.put(entry("b"))
    assert len(store) == 2


def test_a_path_of_odd_characters_works(tmp_path: Path) -> None:
    path = tmp_path / "a %41?b#c é" / "cache.sqlite"
    SqliteEntryStore(path).put(entry())
    assert SqliteEntryStore(path).get("p1", key_of("a"), now=NOW) == entry()


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    SqliteEntryStore(Path("~/.reprise/cache.sqlite")).put(entry())
    assert (tmp_path / ".reprise" / "cache.sqlite").is_file()


FILL = """
    import resource, subprocess, sys
    from pathlib import Path
    from reprise.errors import StoreUnusable
    from resources.sqlite_entry_store import SqliteEntryStore
    from tests.cache_entries import NOW, entry, key_of

    folder, how = Path(sys.argv[1]), sys.argv[2]
    if how == "tmpfs":
        options = ["-t", "tmpfs", "-o", "size=1m", "none"]
        subprocess.run(["mount", *options, str(folder)], check=True)
    else:
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
    store = SqliteEntryStore(folder / "cache.sqlite")
    stored = 0
    try:
        for index in range(200):
            store.put(entry(str(index), payload="x" * 20_000))
            stored += 1
    except StoreUnusable as error:
        print(error)
    assert 3 < stored < 200, stored
    assert len(store) == stored
    for index in range(stored):
        assert store.get("p1", key_of(str(index)), now=NOW) is not None
    print("reads go on")
"""


@pytest.mark.parametrize("how", ["tmpfs", "rlimit"])
def test_a_full_disk_is_named_and_what_was_stored_stays_readable(tmp_path: Path, how: str) -> None:
    if how == "tmpfs" and not can_mount():
        pytest.skip("needs the right to mount; the case `rlimit` covers the same code")
    out = run_python(FILL, str(tmp_path), how, own_mounts=how == "tmpfs")
    assert "full" in out
    assert "reads go on" in out


def test_a_read_only_file_system_is_named(tmp_path: Path) -> None:
    if not can_mount():
        pytest.skip("needs the right to mount")
    out = run_python(
        """
        import subprocess, sys
        from pathlib import Path
        from reprise.errors import StoreUnusable
        from resources.sqlite_entry_store import SqliteEntryStore
        from tests.cache_entries import entry

        folder = Path(sys.argv[1])
        SqliteEntryStore(folder / "old" / "cache.sqlite").put(entry())
        subprocess.run(["mount", "--bind", str(folder), str(folder)], check=True)
        subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
        for name in ("new", "old"):
            try:
                SqliteEntryStore(folder / name / "cache.sqlite").put(entry("b"))
            except StoreUnusable as error:
                print(name, error)
        """,
        str(tmp_path),
        own_mounts=True,
    ).splitlines()
    assert [line.split()[0] for line in out] == ["new", "old"]
    assert all("writable" in line for line in out)


def test_a_full_disk_spares_the_history_that_was_there(tmp_path: Path) -> None:
    out = run_python(
        """
        import resource, sys
        from pathlib import Path
        from reprise.errors import StoreUnusable
        from resources.sqlite_projects import SqliteProjectRegistry
        from tests.cache_entries import NOW

        registry = SqliteProjectRegistry(Path(sys.argv[1]) / "metadata.sqlite")
        registry.add_project("first", now=NOW)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            registry.add_project("second", now=NOW)
        except StoreUnusable as error:
            print(error)
        print([project.name for project in registry.projects()])
        """,
        str(tmp_path),
    )
    assert "the disk failed or is full" in out
    assert "['first']" in out


def test_a_writer_that_is_killed_leaves_whole_entries_and_no_lock(tmp_path: Path) -> None:
    code = """
        import sys
        from pathlib import Path
        from resources.sqlite_entry_store import SqliteEntryStore
        from tests.cache_entries import entry
        store = SqliteEntryStore(Path(sys.argv[1]))
        index = 0
        while True:
            store.put(entry(str(index % 300), payload=str(index) * 5000))
            index += 1
            print(index, flush=True)
    """
    path = tmp_path / "cache.sqlite"
    for _ in range(3):
        with start_python(code, str(path)) as child:
            assert child.stdout is not None
            for _ in range(40):
                assert child.stdout.readline()
            child.kill()
        begun = time.monotonic()
        store = SqliteEntryStore(path)
        assert len(store) >= 40
        for index in range(len(store)):
            back = store.get("p1", key_of(str(index)), now=NOW)
            assert back is not None
            assert back.payload == back.payload[: len(back.payload) // 5000] * 5000
        store.put(entry("after"))
        store.delete("p1", key_of("after"), reason=CacheReason.INVALIDATED, now=NOW)
        assert time.monotonic() - begun < 10
        check = sqlite3.connect(path)
        assert check.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        check.close()
    assert not (tmp_path / "cache.sqlite.damaged").exists()


def test_a_forked_child_uses_connections_of_its_own(tmp_path: Path) -> None:
    store = SqliteEntryStore(tmp_path / "cache.sqlite")
    store.put(entry("parent"))
    child = os.fork()
    if child == 0:
        store.put(entry("child"))
        os._exit(0 if len(store) == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    store.put(entry("parent again"))
    assert len(store) == 3


VERSION_1 = """
    CREATE TABLE component (name TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT;
    INSERT INTO component VALUES ('step cache', 1);
    CREATE TABLE entry (
        id INTEGER PRIMARY KEY, project_id TEXT NOT NULL, cache_key TEXT NOT NULL,
        schema_version INTEGER NOT NULL, workflow_id TEXT NOT NULL, step_label TEXT NOT NULL,
        step_type TEXT NOT NULL, agent_id TEXT, run_id TEXT NOT NULL, created_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL, payload_digest TEXT NOT NULL, artifacts TEXT NOT NULL,
        field_digests TEXT NOT NULL, usage TEXT NOT NULL, seconds REAL NOT NULL,
        payload TEXT NOT NULL, UNIQUE (project_id, cache_key)
    ) STRICT;
    CREATE INDEX entry_by_step ON entry (project_id, workflow_id, step_label, created_at);
    CREATE INDEX entry_by_expiry ON entry (expires_at);
    CREATE TABLE tombstone (
        project_id TEXT NOT NULL, cache_key TEXT NOT NULL, reason TEXT NOT NULL,
        gone_at INTEGER NOT NULL, PRIMARY KEY (project_id, cache_key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX tombstone_by_age ON tombstone (gone_at);
"""


def test_a_migration_keeps_the_entries_of_the_version_before(tmp_path: Path) -> None:
    """The schema at version 1 as it was; edit it never, or old caches break."""
    path = tmp_path / "cache.sqlite"
    stored = entry()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA application_id = {CACHE_APPLICATION_ID}")
    connection.executescript(VERSION_1)
    row = {
        **stored.model_dump(mode="json"),
        "created_at": to_micros(stored.created_at),
        "expires_at": to_micros(stored.expires_at),
        "usage": stored.usage.model_dump_json(),
        "field_digests": json.dumps(stored.field_digests),
        "artifacts": json.dumps([artifact.model_dump() for artifact in stored.artifacts]),
    }
    names = [name for name in row if name not in ("payload_key", "payload_bytes")]
    connection.execute(
        f"INSERT INTO entry ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",
        [row[name] for name in names],
    )
    connection.execute("INSERT INTO tombstone VALUES ('p1', 'gone', 'invalidated', 1)")
    connection.commit()
    connection.close()
    store = SqliteEntryStore(path)
    assert store.get("p1", key_of("a"), now=NOW) == stored
    assert store.stats(now=NOW) == EntryStats(
        rows=1, size_bytes=22, hits=1, projects=1, oldest_at=NOW, newest_at=NOW
    )
    store.put(entry("b"))
    assert len(store) == 2
    check = sqlite3.connect(path)
    assert check.execute("SELECT version FROM component").fetchall() == [(2,)]
    assert check.execute("SELECT reason FROM tombstone").fetchall() == [("invalidated",)]
    assert check.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    check.close()
