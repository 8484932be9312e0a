r"""Random edits of random files against a naive model, which works on lists of tokens.

A token is one character, or one line end of either kind. The model looks for lists in lists and
knows what may stand where; it shares no code with the engine.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from reprise.tools.edit_diff import short_diff
from reprise.tools.text_edit import Edited, EditFault, EditRefusal, TextEdit, edit_bytes

MARK = "\ufeff"
PIECES = (
    *("a", "b", "ab", "x = 1;", "\t", " ", "{", "}", "$1", "\\1", ".*"),
    *("\n", "\n", "\n", "\r\n", "\r\n", "\r\n", "\n\n", "\r\n\r\n"),
    *("\r", "\f", "\v", "\x1c", "\u0085", "\u2028", "\u2029"),
    *("é", "e\u0301", "\u00a0", "“", "”", "\u200b", MARK, "\U0001f469\u200d\U0001f4bb", "漢"),
)
texts = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)
files = st.tuples(
    st.sampled_from(["", "", MARK]), st.lists(st.sampled_from(PIECES), max_size=25)
).map(lambda parts: (parts[0] + "".join(parts[1])).encode())

# ------------------------------------------------------------------------------------ the model


def tokens(text: str) -> list[str]:
    found: list[str] = []
    at = 0
    while at < len(text):
        size = 2 if text[at : at + 2] == "\r\n" else 1
        found.append(text[at : at + size])
        at += size
    return found


def plain(some: Sequence[str]) -> list[str]:
    return ["\n" if each == "\r\n" else each for each in some]


def without_doubled(some: list[str]) -> list[str]:
    """Leave out lone carriage returns before line ends."""
    kept: list[str] = []
    for each in some:
        while each == "\n" and kept and kept[-1] == "\r":
            kept.pop()
        kept.append(each)
    return kept


def places(some: list[str], wanted: list[str], *, overlapping: bool) -> list[int]:
    found: list[int] = []
    at = 0
    while at + len(wanted) <= len(some):
        is_there = some[at : at + len(wanted)] == wanted
        found += [at] * is_there
        at += len(wanted) if is_there and not overlapping else 1
    return found


@dataclass(frozen=True)
class Place:
    """Tokens of the file that are replaced, from `begin` to `end`, and by what."""

    begin: int
    end: int
    new: list[str]


def planned(file: list[str], edit: TextEdit) -> EditFault | list[Place]:
    """Return what an edit has to replace, as little as can be, or why it is refused."""
    old, new = plain(tokens(edit.old_text)), plain(tokens(edit.new_text))
    if old in ([], [MARK]):
        return EditFault.EMPTY_OLD
    if ("\r", "\n") not in pairwise(old):
        new = without_doubled(new)
    if old == new:
        return EditFault.NO_CHANGE
    found = places(plain(file), old, overlapping=not edit.replace_all)
    if not found:
        return EditFault.NOT_FOUND
    if len(found) > 1 and not edit.replace_all:
        return EditFault.AMBIGUOUS
    lead = 0
    while lead < min(len(old), len(new)) and old[lead] == new[lead]:
        lead += 1
    tail = 0
    while tail < min(len(old), len(new)) - lead and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return [
        fitted(file, at + lead, at + len(old) - tail, new[lead : len(new) - tail]) for at in found
    ]


def fitted(file: list[str], begin: int, end: int, new: list[str]) -> Place:
    head = 1 if file[:1] == [MARK] else 0
    begin, end, new = max(begin, head), max(end, head), list(new)
    while begin == head and new[:1] == [MARK]:
        new.pop(0)
    while file[end : end + 1] in (["\n"], ["\r\n"]) and new[-1:] == ["\r"]:
        new.pop()
    return Place(begin, end, new)


def check(file: list[str], result: bytes, found: Sequence[Place]) -> None:
    """Fail unless the result is the file with these places replaced, and not one byte besides."""
    rest = result
    at = 0
    for place in found:
        kept = "".join(file[at : place.begin]).encode()
        assert rest.startswith(kept), (rest, kept)
        rest = rest[len(kept) :]
        for each in place.new:
            written = each.encode()
            if each == "\n":
                written = b"\r\n" if rest.startswith(b"\r\n") else b"\n"
                assert written.decode() in neighbours(file, place)
            assert rest.startswith(written), (rest, written)
            rest = rest[len(written) :]
        at = place.end
    assert rest == "".join(file[at:]).encode()


def neighbours(file: list[str], place: Place) -> set[str]:
    r"""Return which line ends are replaced, or next to the place; `\n` where there are none."""

    def ends(some: Iterator[str]) -> Iterator[str]:
        return (each for each in some if each in ("\n", "\r\n"))

    inner = set(ends(iter(file[place.begin : place.end])))
    above = next(ends(iter(file[: place.begin][::-1])), None)
    below = next(ends(iter(file[place.end :])), None)
    return (inner | {each for each in (above, below) if each}) or {"\n"}


# ------------------------------------------------------------------------------------ the edits


@st.composite
def edits_of(draw: st.DrawFn, file: list[str]) -> TextEdit:
    """Draw an edit, mostly of what the file has, in other line ends now and then."""
    flip = draw(st.sampled_from(["keep", "lf", "crlf"]))
    old = draw(texts)
    if file and draw(st.integers(0, 5)) > 0:
        begin = draw(st.just(0) | st.integers(0, len(file) - 1))
        old = "".join(file[begin : begin + draw(st.integers(1, 12))])
    if flip != "keep":
        old = "".join(plain(tokens(old)))
        old = old.replace("\n", "\r\n") if flip == "crlf" else old
    new = draw(texts)
    if draw(st.booleans()):
        parts = tokens(old)
        at = draw(st.integers(0, len(parts)))
        gone = draw(st.integers(0, 2))
        new = "".join([*parts[:at], new, *parts[at + gone :]])
    new = draw(st.sampled_from([new, new, new, f"{new}\r", f"{MARK}{new}", f"\n{new}"]))
    return TextEdit(old, new, replace_all=draw(st.booleans()))


class Machine(RuleBasedStateMachine):
    """A file and one edit after the other."""

    data = b""

    @initialize(data=files)
    def begin(self, data: bytes) -> None:
        self.data = data

    @invariant()
    def is_text(self) -> None:
        assert b"\0" not in self.data
        self.data.decode()

    @rule(draw=st.data())
    def edit(self, draw: st.DataObject) -> None:
        """Nothing is changed outside the places, and a refusal has its reason."""
        file = tokens(self.data.decode())
        edit = draw.draw(edits_of(file))
        expected = planned(file, edit)
        result = edit_bytes(self.data, [edit])
        if isinstance(expected, EditFault):
            assert isinstance(result, EditRefusal)
            assert result.code is expected
            self.check_hint(file, result)
            return
        if isinstance(result, EditRefusal):
            assert result.code is EditFault.NO_CHANGE
            check(file, self.data, expected)
            return
        assert result.replacements == (len(expected),)
        assert result.own_output == ()
        check(file, result.data, expected)
        assert result.data != self.data
        assert len(short_diff(self.data, result.data, "a", chars_max=500)) <= 500
        self.check_reverse(edit, result.data)
        self.data = result.data

    def check_hint(self, file: list[str], refusal: EditRefusal) -> None:
        """What a hint shows is in the file, at the line that it says."""
        lines = "".join(plain(file)).split("\n")
        assert all(1 <= line <= len(lines) for line in refusal.lines)
        if refusal.text is not None:
            assert refusal.line is not None
            shown = "\n".join(lines[refusal.line - 1 :])
            first = shown.find(refusal.text)
            assert 0 <= first <= len(lines[refusal.line - 1])

    def check_reverse(self, edit: TextEdit, after: bytes) -> None:
        """An edit that is undone by its reverse leaves the file as it was."""
        odd = MARK in edit.old_text + edit.new_text or "\r" in tokens(
            edit.old_text + edit.new_text + "." + self.data.decode() + after.decode()
        )
        if odd or edit.new_text == "" or edit.replace_all:
            return
        back = edit_bytes(after, [TextEdit(edit.new_text, edit.old_text)])
        if isinstance(back, EditRefusal):
            assert back.code is EditFault.AMBIGUOUS
            return
        before = tokens(self.data.decode())
        assert plain(tokens(back.data.decode())) == plain(before)
        if not {"\n", "\r\n"} <= set(before) and {"\n", "\r\n"} & set(tokens(after.decode())):
            assert back.data == self.data

    @rule(draw=st.data(), count=st.integers(2, 4))
    def edit_in_one_call(self, draw: st.DataObject, count: int) -> None:
        """Edits of one call do what they do one call each, or nothing."""
        edits: list[TextEdit] = []
        data = self.data
        problem: tuple[EditFault, int] | None = None
        for index in range(count):
            edit = draw.draw(edits_of(tokens(data.decode())))
            edits.append(edit)
            step = edit_bytes(data, [edit])
            if isinstance(step, EditRefusal):
                problem = problem or (step.code, index)
            elif problem is None:
                data = step.data
        result = edit_bytes(self.data, edits)
        if problem is None and data == self.data:
            problem = (EditFault.NO_NET_CHANGE, count - 1)
        if problem is not None:
            assert isinstance(result, EditRefusal)
            assert (result.code, result.edit) == problem
            return
        assert isinstance(result, Edited)
        assert result.data == data
        if MARK not in self.data.decode() + "".join(edit.new_text for edit in edits):
            assert result.own_output == own_output(self.data, edits)
        self.data = data


def own_output(data: bytes, edits: Sequence[TextEdit]) -> tuple[int, ...]:
    """Return which edits took what was not together before; each token knows where it was."""
    file = tokens(data.decode())
    origin: list[int | None] = list(range(len(file)))
    found: list[int] = []
    for index, edit in enumerate(edits):
        old = plain(tokens(edit.old_text))
        for at in places(plain(file), old, overlapping=False):
            was = origin[at : at + len(old)]
            if was[0] is None or was != list(range(was[0], was[0] + len(old))):
                found.append(index)
                break
        taken = planned(file, edit)
        assert not isinstance(taken, EditFault)
        after = edit_bytes("".join(file).encode(), [edit])
        assert isinstance(after, Edited)
        for place in reversed(taken):
            file[place.begin : place.end] = place.new
            origin[place.begin : place.end] = [None] * len(place.new)
        now = tokens(after.data.decode())
        if len(now) != len(file):
            # A carriage return and a line feed met: what was two tokens is one.
            merged(file, origin)
        assert plain(file) == plain(now)
        file = now
    return tuple(found)


def merged(file: list[str], origin: list[int | None]) -> None:
    """Join each lone carriage return with the line feed behind it."""
    for at in range(len(file) - 1, 0, -1):
        if file[at] == "\n" and file[at - 1] == "\r":
            del file[at - 1], origin[at - 1]


def test_random_edits_agree_with_a_naive_model() -> None:
    run_state_machine_as_test(
        Machine, settings=settings(max_examples=60, stateful_step_count=12, deadline=None)
    )


@pytest.mark.slow
def test_very_many_random_edits_agree_with_a_naive_model() -> None:
    run_state_machine_as_test(
        Machine, settings=settings(max_examples=600, stateful_step_count=30, deadline=None)
    )
