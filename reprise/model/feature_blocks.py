"""Parts of an agent's prompt or skill that stand there only while a feature is on.

    <!-- with sandbox_edit_tools -->
    Prefer EditSandboxFile for a change to a file that there is.
    <!-- end -->
    <!-- without sandbox_edit_tools -->
    To change a file, read it and write it whole.
    <!-- end -->

Each mark has a line of its own and goes in any case. What is between `with` and `end` is kept while
the feature is on, what is between `without` and `end` while it is off. So a prompt never names a
tool that is withheld.

Source: specification E7, E11a. Tests: tests/unit/model/test_feature_blocks.py.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from reprise.model.model_errors import did_you_mean

SANDBOX_EDIT_TOOLS = "sandbox_edit_tools"
"""Targeted edits, ranged reads and outlines of sandbox files."""

FEATURES = frozenset({SANDBOX_EDIT_TOOLS})
"""What blocks may ask for; all are on unless a setting turns one off."""

_MARK_LIKE = re.compile(r"<!--\s*(?:with|without|end)\b")
_BEGIN = re.compile(r"<!-- (with|without) (\S+) -->")
_END = "<!-- end -->"


@dataclass(frozen=True)
class KeptText:
    """A text without its marks and without what is off."""

    text: str
    """What is left; the very text where it holds no mark."""
    problems: tuple[tuple[int, str], ...] = ()
    """Line, from 0, and what is wrong with its mark."""


def kept_text(text: str, features: Collection[str] = FEATURES) -> KeptText:
    """Return what a text says while these features are on.

    Args:
        text: A prompt or skill; its lines end with line feeds.
        features: Those that are on.
    """
    if _MARK_LIKE.search(text) is None:
        return KeptText(text)
    kept: list[str] = []
    problems: list[tuple[int, str]] = []
    opened: tuple[int, bool] | None = None
    for at, line in enumerate(text.split("\n")):
        mark = line.strip()
        if _MARK_LIKE.search(line) is None:
            if opened is None or opened[1]:
                kept.append(line)
            continue
        problem = _problem(mark, is_open=opened is not None)
        if problem is not None:
            problems.append((at, problem))
        elif mark == _END:
            opened = None
        else:
            _, word, feature, _ = mark.split()
            opened = (at, (feature in features) == (word == "with"))
    if opened is not None:
        problems.append((opened[0], f"this block has no `{_END}`; add it"))
    return KeptText("\n".join(kept), tuple(problems))


def _problem(mark: str, *, is_open: bool) -> str | None:
    """Return what is wrong with a mark; None when it may stand here."""
    if mark == _END:
        return None if is_open else f"`{_END}` ends no block; remove it"
    begin = _BEGIN.fullmatch(mark)
    if begin is None:
        return (
            f"{mark[:80]!r} is no mark of a block; write `<!-- with {SANDBOX_EDIT_TOOLS} -->` or "
            f"`{_END}` on a line of its own"
        )
    if begin[2] not in FEATURES:
        hint = did_you_mean(begin[2], FEATURES) or f"; there is {', '.join(sorted(FEATURES))}"
        return f"there is no feature {begin[2]!r}{hint}"
    if is_open:
        return f"a block stands in another one; put `{_END}` before it"
    return None
