"""Why a step ran again: which fields of its key differ, down to the step, file or program.

Each entry keeps a digest for every key field, and for the parts that a person would name: the
steps whose outputs it read, the project files that it saw, its tools, its programs. The texts
behind some fields are kept as bodies under the same digests, so that a difference can be shown.

To explain one more field by its parts: a line in `explained_digests`.

Source: specification C4, C17.
"""

import difflib
import json
from collections.abc import Mapping

from reprise.cache.key import KeyFacts
from reprise.canonical import json_digest, sha256_hex
from reprise.model.result import FieldChange

PART = " / "
"""Stands between a field and its part in the name of a digest."""

TEXT_FIELDS = frozenset(
    {
        "agent_system_prompt",
        "agent_assigned_skills",
        "agent_output_schema",
        "agent_model_parameters",
        "context_budget",
        "step_prompt",
        "user_request",
        "variables",
        "extract",
        "video_analyze",
        "video_compile",
        "edit_room",
        "graphics_room",
        "color_grade_room",
        "function",
        "toolchain",
    }
)
"""Fields whose texts are kept, to show what changed in them."""

DIFF_LINES_MAX = 40
"""Longest difference shown, in lines."""


def explained_digests(
    fields: Mapping[str, str],
    read: Mapping[str, str],
    facts: KeyFacts,
    files: Mapping[str, tuple[str, str]],
) -> dict[str, str]:
    """Return a digest for each field, and for the parts of those that have any.

    Args:
        fields: Key field → digest.
        read: Step for people → digest of the output that was read.
        facts: What the key was made of besides definition and input.
        files: File id → name and content digest.
    """
    digests = dict(fields)
    for step, digest in read.items():
        digests[f"resolved_input{PART}{step}"] = digest
    for order, label, *rest in facts.history or ():
        digests[f"history_digest{PART}step {order} ({label})"] = sha256_hex("\n".join(rest))
    for row in facts.files or ():
        name, digest = files.get(row[0], (row[0], ""))
        digests[f"project_file_fingerprint{PART}{name}"] = sha256_hex("\n".join((*row, digest)))
    for file in facts.sandbox.files if facts.sandbox is not None else ():
        digests[f"sandbox_digest{PART}{file.path}"] = sha256_hex(f"{file.mode:o} {file.digest}")
    for tool in facts.tools:
        digests[f"agent_tools{PART}{tool.get('name')}"] = json_digest(tool)
    for program, version in (facts.toolchain or {}).items():
        digests[f"toolchain{PART}{program}"] = json_digest(version)
    return digests


def explain_changes(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[FieldChange, ...]:
    """Return the fields whose digests differ, each with the parts that do, by name."""
    changed = sorted(name for name in set(before) | set(now) if before.get(name) != now.get(name))
    parts: dict[str, list[str]] = {}
    for name in changed:
        field, _, part = name.partition(PART)
        if part and field in now and field not in changed:
            # Only its name differs, as it may in another workflow.
            continue
        parts.setdefault(field, [])
        if part:
            parts[field].append(_part(part, name in before, name in now))
    if parts.get("history_digest") == parts.get("resolved_input"):
        # The same outputs, once as values and once as text.
        parts.pop("history_digest", None)
    return tuple(
        FieldChange(
            field=field,
            parts=tuple(its_parts),
            before=before.get(field),
            now=now.get(field),
        )
        for field, its_parts in parts.items()
    )


def _part(name: str, was: bool, is_now: bool) -> str:
    if was and is_now:
        return name
    return f"{name}, new" if is_now else f"{name}, gone"


def changes_text(changes: tuple[FieldChange, ...]) -> str:
    """Return changes in one line, for a table or a step's metadata."""
    shown = [
        change.field + (f" ({'; '.join(change.parts[:3])})" if change.parts else "")
        for change in changes[:3]
    ]
    more = len(changes) - len(shown)
    return "changed: " + ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def text_difference(before: str, now: str) -> list[str]:
    """Return a short difference of two field texts, in the unified form without its header.

    A list of one text, as a single agent's prompt is, is compared as that text.
    """
    old, new = (_plain(text).splitlines() for text in (before, now))
    lines = list(difflib.unified_diff(old, new, lineterm="", n=1))[2:]
    if len(lines) > DIFF_LINES_MAX:
        left = len(lines) - DIFF_LINES_MAX
        lines = [*lines[:DIFF_LINES_MAX], f"… {left} more lines"]
    return lines


def _plain(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return (
        json.dumps(value, indent=1, ensure_ascii=False) if isinstance(value, dict | list) else text
    )
