"""The key of a step result: every field that its answer depends on, by name.

A field that does not apply to a step is absent, which differs from null and from empty. A field
that cannot be computed raises, and then there is neither lookup nor store: a key is never made
from the rest. Adding or changing a field bumps `SCHEMA_VERSION` in the same commit; the golden
digest in tests/unit/cache/test_key.py reminds.

Source: specification C1 to C4, C23.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Generic, TypeVar

from pydantic import JsonValue

from reprise.canonical import (
    canonical_json,
    digest_fields,
    encode_fields,
    json_digest,
    sha256_hex,
    text_digest,
)
from reprise.model.agent import AgentDefinition
from reprise.model.project import ProjectFile
from reprise.model.sandbox import SandboxTree
from reprise.model.workflow import Step, StepType

SCHEMA_VERSION = 6

ALGORITHM_REVISIONS: Mapping[StepType, str] = {
    StepType.EXTRACT: "1",
    StepType.VIDEO_ANALYZE: "shots 1, loudness 1, speech 1, view 1",
    StepType.EDIT_ROOM: "3",
    StepType.VIDEO_COMPILE: "2",
    # What is around a user's code: how it is loaded, called, and its answer taken.
    StepType.FUNCTION: "1",
}
"""Revision of each executor's own rules; bump one when its answers change for the same inputs."""

CONFIG_BLOBS = (
    "extract",
    "video_analyze",
    "video_compile",
    "edit_room",
    "graphics_room",
    "color_grade_room",
    "function",
)


INPUT_FIELD = "resolved_input"
"""The largest field by far, and none that is kept as a body: its digest is that of the text as it
stands, since escaping it as JSON would take longer than hashing it."""

_BLANK = "\0" * 64
"""Stands for a digest."""

SHORT_CHARS = 4096
"""Digests of texts up to so long are remembered."""

_Definition = TypeVar("_Definition")


class _Same(Generic[_Definition]):
    """Definitions, told apart by identity: they never change, and one that is read anew is another.

    Performance: comparing two takes longer than encoding one.
    """

    __slots__ = ("_hash", "members")

    def __init__(self, *members: _Definition) -> None:
        self.members = members
        self._hash = hash(tuple(map(id, members)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Same) or len(self.members) != len(other.members):
            return False
        return all(a is b for a, b in zip(self.members, other.members, strict=True))


@dataclass(frozen=True)
class KeyFacts:
    """What a step's answer depends on besides its definition and its input."""

    agents: tuple[AgentDefinition, ...] = ()
    """Every agent that works in the step, in speaking order, prompts with variables replaced."""
    providers: tuple[dict[str, JsonValue], ...] = ()
    """Per agent: what identifies its provider and model."""
    tools: tuple[dict[str, JsonValue], ...] = ()
    """Every tool offered: name, schema, revision."""
    toolchain: dict[str, str] | None = None
    """Programs and models that a media step uses."""
    files: tuple[tuple[str, ...], ...] | None = None
    """What it sees of the project's files; null when it sees none."""
    sandbox: SandboxTree | None = None
    """The sandbox's files, for an agent that has tools for them; null when none has."""
    history: tuple[tuple[str, ...], ...] | None = None
    """Prior outputs that it reads as values, not as text: order, label, digest of the output, and
    where it can see that, who gave them."""
    context_budget: dict[str, JsonValue] | None = None
    """The context budget's settings, where they changed what a model is shown; null elsewhere, so
    that a step whose input fits keeps its key when they change."""
    function_fingerprint: str | None = None
    """Fingerprint of a Function step's code (reprise/cache/fingerprint.py)."""


def file_rows(
    files: Sequence[ProjectFile], indexed: Mapping[str, str] | None = None
) -> tuple[tuple[str, ...], ...]:
    """Return the fingerprint rows of a whole project, by file id (specification C2).

    Args:
        files: The project's files.
        indexed: File name → digest of what the search index knows of it, for an agent that
            searches; the index may lag behind the files.
    """
    left = dict(indexed or {})
    rows = [
        (
            file.id,
            file.storage_key,
            str(file.size_bytes),
            file.uploaded_at.isoformat(),
            file.summary_status.value,
            file.indexing_status.value,
            *([left.pop(file.name)] if file.name in left else ()),
        )
        for file in sorted(files, key=lambda file: file.id)
    ]
    return (*rows, *((f"index of {name}", digest) for name, digest in sorted(left.items())))


def key_fields(
    step: Step,
    facts: KeyFacts,
    *,
    project_id: str,
    resolved_input: str,
    user_request: str | None,
    variables: Mapping[str, JsonValue],
) -> dict[str, str | None]:
    """Return the key's fields as text.

    Args:
        step: The step, its config's variables replaced.
        facts: What else its answer depends on.
        project_id: Entries are never shared across projects.
        resolved_input: The fully built input text, as a model is shown it.
        user_request: The request; None when the step cannot see it.
        variables: The variables that the step can see.

    Raises:
        NotCanonical: A value cannot be hashed; there is no key then.
    """
    fields: dict[str, str | None] = {
        "schema_version": str(SCHEMA_VERSION),
        "project_id": project_id,
        INPUT_FIELD: resolved_input,
        "variables": canonical_json(dict(variables)),
        **_step_fields(_Same(step)),
    }
    if step.type in ALGORITHM_REVISIONS:
        fields["algorithm_revision"] = ALGORITHM_REVISIONS[step.type]
    if user_request is not None:
        fields["user_request"] = user_request
    return fields | _fact_fields(facts)


def field_digests(fields: Mapping[str, str | None]) -> dict[str, str]:
    """Return each field's digest: that of its canonical JSON, as bodies have it.

    Raises:
        ValueError: A text holds a lone surrogate; there is no key then.
    """
    return {name: _field_digest(name, value) for name, value in fields.items()}


def cache_key(digests: Mapping[str, str]) -> str:
    """Return the key: SHA-256 over the field-named encoding, as 64 hexadecimal digits.

    Args:
        digests: Field → digest. The same digests explain a miss, so that a large input is hashed
            once; null, empty and absent still differ.
    """
    if set(map(len, digests.values())) == {len(_BLANK)}:
        order, template = _encoding_of(tuple(digests))
        text = template % itemgetter(*order)(digests)
        if text.isascii():
            return sha256_hex(text)
    return digest_fields(digests)


@lru_cache(maxsize=256)
def _encoding_of(names: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    # The sets of fields are few. What is filled in has the length of what stood there.
    order = tuple(sorted(names))
    fields = [encode_fields({name: _BLANK}).decode() for name in order]
    named = [field[len("1;") : -len(_BLANK)].replace("%", "%%") for field in fields]
    return order, f"{len(order)};{'%s'.join(named)}%s"


def _field_digest(name: str, value: str | None) -> str:
    if value is None or len(value) <= SHORT_CHARS:
        return _short_digest(name == INPUT_FIELD, value)
    return text_digest(value) if name == INPUT_FIELD else json_digest(value)


@lru_cache(maxsize=1024)
def _short_digest(is_input: bool, value: str | None) -> str:
    # The same few from step to step: types, modes, tools, parameters, null.
    return text_digest(value) if is_input and value is not None else json_digest(value)


def _fact_fields(facts: KeyFacts) -> dict[str, str | None]:
    fields: dict[str, str | None] = {}
    if facts.agents:
        fields |= _agent_fields(_Same(*facts.agents))
        fields["agent_inference_provider_id"] = _list_text(_Same(*facts.providers))
        fields["agent_tools"] = _list_text(_Same(*facts.tools))
    if facts.toolchain is not None:
        fields["toolchain"] = canonical_json(dict(facts.toolchain))
    if facts.files is not None:
        fields["project_file_fingerprint"] = canonical_json([list(row) for row in facts.files])
    if facts.sandbox is not None:
        fields["sandbox_digest"] = facts.sandbox.digest
    if facts.history is not None:
        fields["history_digest"] = canonical_json([list(row) for row in facts.history])
    if facts.context_budget is not None:
        fields["context_budget"] = canonical_json(dict(facts.context_budget))
    if facts.function_fingerprint is not None:
        fields["function_fingerprint"] = facts.function_fingerprint
    return fields


@lru_cache(maxsize=1024)
def _list_text(same: _Same[dict[str, JsonValue]]) -> str:
    return canonical_json(list(same.members))


@lru_cache(maxsize=1024)
def _step_fields(same: _Same[Step]) -> Mapping[str, str | None]:
    (step,) = same.members
    blobs = {name: getattr(step, name) for name in CONFIG_BLOBS}
    return {
        "step_type": step.type.value,
        "input_mode": step.input_mode.value,
        "selected_prior_step_orders": canonical_json(list(step.selected_prior_step_orders)),
        "input_mapping": canonical_json(dict(step.input_mapping)),
        "condition": step.condition,
        "max_iterations": None if step.max_iterations is None else str(step.max_iterations),
        "min_score": None if step.min_score is None else repr(step.min_score),
        "step_prompt": step.prompt,
        **{
            name: canonical_json(blob.model_dump(mode="json"))
            for name, blob in blobs.items()
            if blob is not None
        },
    }


@lru_cache(maxsize=1024)
def _agent_fields(same: _Same[AgentDefinition]) -> Mapping[str, str | None]:
    agents = same.members
    return {
        "agent_type": canonical_json([agent.agent_type for agent in agents]),
        "agent_definition_id": canonical_json([agent.id for agent in agents]),
        "agent_system_prompt": canonical_json([agent.system_prompt for agent in agents]),
        "agent_output_schema_name": canonical_json([agent.output_schema_name for agent in agents]),
        "agent_output_schema": canonical_json(
            # A model is shown its keys as they stand.
            [agent.output_schema for agent in agents],
            sort_keys=False,
        ),
        "agent_assigned_skills": canonical_json([list(a.assigned_skills) for a in agents]),
        "agent_model_parameters": canonical_json(
            [agent.parameters.model_dump(mode="json") for agent in agents]
        ),
        "agent_tool_groups": canonical_json(
            [list[JsonValue](sorted(group.value for group in a.tool_groups)) for a in agents]
        ),
        "tool_choice": canonical_json(
            [None if a.tool_choice is None else a.tool_choice.value for a in agents]
        ),
    }
