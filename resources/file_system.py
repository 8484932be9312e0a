"""On what kind of file system a path is, where the system tells (Linux).

SQLite keeps its promises only where locks and shared memory work: among processes of one machine,
on a local disk. Over a network they seem to work until entries are lost.

Source: specification C13; issues ccache 68, 309, 512; diskcache 13, 164, 198, 249, 345.
"""

from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")

NETWORK_KINDS = frozenset(
    {
        *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "fhgfs", "fuse", "gfs", "gfs2"),
        *("gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "smb2", "smb3"),
        *("smbfs", "vboxsf", "virtiofs", "vmhgfs"),
    }
)
"""Kinds whose bytes another machine, or a host behind a virtual one, may hold."""

LOCAL_FUSE_KINDS = frozenset({"fuse.fuse-overlayfs", "fuse.mergerfs", "fuseblk"})
"""Kinds of FUSE that are a local disk: the root of rootless containers, pools, NTFS."""


def file_system_kind(path: Path) -> str | None:
    """Return the kind of the file system that holds a path, or will; None when unknown."""
    try:
        table = MOUNTS.read_text(errors="surrogateescape")
    except OSError:
        return None
    return kind_in(table, path)


def kind_in(table: str, path: Path) -> str | None:
    """Return the kind of the file system of a path, by a table in the form of `mountinfo`."""
    target = Path(path).resolve()
    best: tuple[int, str] | None = None
    for line in table.splitlines():
        before, separator, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if not separator or len(fields) < 5:
            continue
        point = Path(_plain(fields[4]))
        # Of two mounts at one point, the later covers the earlier.
        if target.is_relative_to(point) and (best is None or len(point.parts) >= best[0]):
            best = (len(point.parts), kinds[0])
    return None if best is None else best[1]


def is_network(kind: str | None) -> bool:
    """Answer whether a kind of file system is one over a network; unknown ones are not."""
    if kind is None or kind in LOCAL_FUSE_KINDS:
        return False
    return kind in NETWORK_KINDS or kind.startswith("fuse.")


def _plain(field: str) -> str:
    # The kernel writes blanks and backslashes in octal.
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, character)
    return field
