"""Kinds of file systems by the kernel's table, and what the cache does on a network's."""

import sys
from pathlib import Path

import pytest

from reprise.errors import StoreUnusable
from resources.file_system import file_system_kind, is_network, kind_in
from resources.sqlite_cache import SqliteCacheDatabase

TABLE = r"""
22 1 0:21 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 22 0:40 / /srv/team rw,relatime shared:9 - nfs4 files:/team rw,vers=4.2
31 30 0:41 / /srv/team/fast rw,relatime - xfs /dev/vdb rw
32 22 0:42 / /mnt/a\040b rw,relatime - cifs //host/share rw
33 22 0:43 / /mnt/covered rw,relatime - ext4 /dev/vdc rw
34 22 0:44 / /mnt/covered rw,relatime master:2 - fuse.sshfs host: rw
broken
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/me/.reprise/step-cache.db", "ext4"),
        ("/srv/team/home/step-cache.db", "nfs4"),
        ("/srv/team", "nfs4"),
        ("/srv/teamwork/step-cache.db", "ext4"),
        ("/srv/team/fast/step-cache.db", "xfs"),
        ("/mnt/a b/step-cache.db", "cifs"),
        ("/mnt/covered/step-cache.db", "fuse.sshfs"),
    ],
)
def test_the_kind_is_that_of_the_deepest_and_latest_mount(path: str, kind: str) -> None:
    assert kind_in(TABLE, Path(path)) == kind


def test_a_table_without_a_root_says_nothing() -> None:
    assert kind_in("", Path("/home/me")) is None


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "fuse", "ceph"]
)
def test_network_file_systems_are_known(kind: str) -> None:
    assert is_network(kind)


@pytest.mark.parametrize(
    "kind", [None, "ext4", "xfs", "btrfs", "overlay", "tmpfs", "zfs", "fuseblk", "fuse.mergerfs"]
)
def test_local_ones_are_not_taken_for_them(kind: str | None) -> None:
    assert not is_network(kind)


def test_the_cache_refuses_a_network_file_system_and_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match=r"network file system \(nfs4\).*local disk"):
        SqliteCacheDatabase(tmp_path / "cache.sqlite", kind_of=lambda _: "nfs4")
    assert list(tmp_path.iterdir()) == []


def test_the_cache_takes_a_local_or_unknown_one(tmp_path: Path) -> None:
    for kind in ("ext4", None):
        SqliteCacheDatabase(tmp_path / "cache.sqlite", kind_of=lambda _, kind=kind: kind)  # type: ignore[misc]  # A default that binds.


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such table")
def test_this_machine_tells_the_kind_of_a_path_that_is_not_there_yet(tmp_path: Path) -> None:
    here = file_system_kind(tmp_path)
    assert here is not None
    assert file_system_kind(tmp_path / "new" / "cache.sqlite") == here
