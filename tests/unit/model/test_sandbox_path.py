"""The rules for a sandbox's paths that need no disk."""

import posixpath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reprise.errors import SandboxRefused
from reprise.model.sandbox import SandboxLimits
from reprise.model.sandbox_path import (
    FOLDERS_MAX,
    PATH_BYTES_MAX,
    check_room,
    check_size,
    checked_path,
    clash,
    joined,
    name_problem,
    plain_path,
    shown,
)

names = st.one_of(
    st.text(max_size=6),
    st.sampled_from([".", "..", "", "a", "A", "node_modules", ".git", ".part-1", "a.", " ", "C:"]),
)
paths = st.lists(names, max_size=5).map("/".join)


def checked(path: str) -> tuple[str, ...] | SandboxRefused:
    try:
        return checked_path(path)
    except SandboxRefused as refusal:
        return refusal


@given(paths)
@example("/")
@example("./A:")
@example("a/../../b")
@example("\udc80/a")
def test_a_path_that_passes_stays_below_the_root_and_is_its_own_plain_form(path: str) -> None:
    outcome = checked(path)
    if isinstance(outcome, SandboxRefused):
        assert outcome.code == "bad_path"
        assert str(outcome).isprintable()
        return
    parts = outcome
    plain = joined(parts)
    assert posixpath.normpath(posixpath.join("/base", path)) == f"/base/{plain}"
    assert checked_path(plain) == parts
    assert plain_path(path) == plain
    assert all(name_problem(part) is None for part in parts)
    assert len(parts) <= FOLDERS_MAX + 1
    assert len(plain.encode()) <= PATH_BYTES_MAX


@given(st.text(max_size=300) | st.text(st.characters(categories=["Cc", "Cf", "Cs", "Zl", "Zp"])))
def test_a_path_in_a_message_is_one_line_that_can_be_printed(path: str) -> None:
    assert shown(path).isprintable()
    assert len(shown(path)) < 2500


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("Root.tsx", "root.tsx"),
        ("STRASSE", "straße"),
        ("e\u0301.txt", "É.txt"),
        ("\u212b", "å"),
        ("a\u200db", "ab"),
        ("ΣΑΣ", "σας"),
    ],
)
def test_names_that_some_file_systems_take_for_the_same_clash(name: str, other: str) -> None:
    assert clash(name, ["zzz", other]) == other
    assert clash(other, [name]) == name


def test_a_name_does_not_clash_with_itself_or_with_another() -> None:
    assert clash("a.txt", ["a.txt", "b.txt", "a.txt2", "á.txt"]) is None


def test_limits_are_the_largest_that_pass() -> None:
    limits = SandboxLimits(entries_max=2, tree_bytes_max=10)
    check_room(2, 10, limits)
    check_size("a.txt", 10, 10)
    with pytest.raises(SandboxRefused, match="more than 2 files, folders and links"):
        check_room(3, 0, limits)
    with pytest.raises(SandboxRefused, match="more than 10 bytes together"):
        check_room(0, 11, limits)
    with pytest.raises(SandboxRefused, match=r"'a\.txt': it has more than 10 bytes"):
        check_size("a.txt", 11, 10)
