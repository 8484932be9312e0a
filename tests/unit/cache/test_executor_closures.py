"""The guard over code that answers deterministically: edited code needs a new revision.

The key of such a step holds a revision, not the code (specification C2). So a changed executor
whose revision stayed would serve answers of the code before it. This test hashes everything that
each executor reaches and compares with tests/golden/executor_closures.json.

When it fails, CONTRIBUTING.md ("Code behind a revision") says what to do:

    bin/test --update-golden tests/unit/cache/test_executor_closures.py
    bin/test --update-golden --same-answers VideoCompile tests/unit/cache/test_executor_closures.py

The first takes over closures whose revision was raised, and new ones; the second also those named,
whose answers you say are the same for every input.

Source: specification C20.
"""

import functools
import importlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pipelines.steps import EXECUTORS
from reprise.agents.json_tools import REVISION as JSON_REVISION
from reprise.agents.requests_revision import REQUESTS_REVISION
from reprise.cache.code_closure import CodeClosure, code_closure
from reprise.cache.key import ALGORITHM_REVISIONS
from reprise.model.search import SEARCH_REVISION, index_revision
from reprise.model.workflow import StepType
from reprise.ports import ModuleSource
from reprise.tools.catalog import TOOLS as ALL_TOOLS
from resources.anthropic_provider import AnthropicProvider
from resources.model_call import Endpoint
from resources.openai_provider import OpenAICompatibleProvider
from resources.tool_modes import JsonToolProvider

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "executor_closures.json"

ROOTS: Mapping[str, tuple[str, ...]] = {
    StepType.VIDEO_ANALYZE: (
        "pipelines.steps.video_analyze:VideoAnalyzeExecutor",
        "resources.video_analyzer:FfmpegVideoAnalyzer",
        "resources.faster_whisper_speech:FasterWhisperSpeech",
    ),
    StepType.EDIT_ROOM: ("pipelines.steps.edit_room:EditRoomExecutor",),
    StepType.VIDEO_COMPILE: (
        "pipelines.steps.video_compile:VideoCompileExecutor",
        "resources.film_renderer:FfmpegFilmRenderer",
        "resources.ffmpeg_runner:FfmpegRunner",
    ),
    # Not the loader: it runs code by its text, which no closure follows. What it loads is in the
    # key by its own fingerprint.
    StepType.FUNCTION: ("pipelines.steps.function:FunctionExecutor",),
    "agent": ("pipelines.steps.agent:AgentExecutor",),
    "heuristic": ("resources.heuristic_provider:HeuristicProvider",),
    "tools": ("reprise.tools.toolbox:Toolbox",),
    "requests": (
        "reprise.agents.requests_revision:REQUESTS_REVISION",
        "reprise.agents.chat_requests:request_bytes",
        "reprise.agents.chat_completions:reply_of",
        "reprise.agents.chat_completions:assembled",
        "reprise.agents.anthropic_requests:request_bytes",
        "reprise.agents.anthropic_messages:reply_of",
        "reprise.agents.anthropic_messages:assembled",
    ),
    "json_tools": (
        "reprise.agents.json_tools:REVISION",
        "reprise.agents.json_tools:json_request",
        "reprise.agents.json_tools:json_reply",
    ),
    # What a search answers from an index, not how its file is kept; what is in the index is in
    # keys by its digests.
    "search": (
        "resources.sqlite_project_index:searched",
        "resources.sqlite_project_index:_WORDS",
        "resources.sqlite_project_index:_insert",
        "resources.memory_project_index:MemoryProjectIndex",
    ),
}
"""What answers → where its code begins. What an adapter gets in its constructor is not reached from
it, so it is named here too."""

PACKAGES = ("pipelines", "reprise", "resources")
APART = ("reprise.cache", "reprise.errors", "reprise.model.result")
"""Modules that no answer depends on: the key itself, errors, and the shape of a step's result."""

TOOLS = "tools"
TOOLS_MODULE = "reprise.tools"
"""Tools have revisions of their own in the keys of agents, so they are an entry of their own."""

REVISION_NAME = re.compile(r"(.+):([A-Z_]*REVISIONS?)")
"""Constants of this name are revisions that go into keys, by way of a toolchain."""


def source_of(name: str, *, with_tools: bool) -> ModuleSource | None:
    apart = APART if with_tools else (*APART, TOOLS_MODULE)
    if name.partition(".")[0] not in PACKAGES or name.startswith(apart):
        return None
    path = ROOT.joinpath(*name.split("."))
    for file, is_package in ((path / "__init__.py", True), (path.with_suffix(".py"), False)):
        if file.is_file():
            shown = str(file.relative_to(ROOT))
            return ModuleSource(
                name=name, text=file.read_text("utf-8"), path=shown, is_package=is_package
            )
    return None


@functools.cache
def closure_of(name: str) -> CodeClosure:
    roots = [root.partition(":")[::2] for root in ROOTS[name]]
    return code_closure(roots, functools.partial(source_of, with_tools=name == TOOLS))


def revision_of(name: str) -> dict[str, Any]:
    """Return every revision that the key holds for this answerer."""
    found: dict[str, Any] = {}
    if name in set(StepType):
        found["algorithm_revision"] = ALGORITHM_REVISIONS[StepType(name)]
    if name == TOOLS:
        found["tools"] = {tool: row.revision for tool, row in ALL_TOOLS.items()}
    for part in closure_of(name).parts:
        match = REVISION_NAME.fullmatch(part)
        if match is not None:
            value = getattr(importlib.import_module(match[1]), match[2])
            found[part] = dict(value) if isinstance(value, Mapping) else value
    return found


def entry_of(name: str) -> dict[str, Any]:
    closure = closure_of(name)
    return {
        "revision": revision_of(name),
        "closure_digest": closure.digest,
        "modules": closure.modules(),
    }


def merged(
    golden: Mapping[str, Any], now: Mapping[str, Any], same_answers: Collection[str]
) -> dict[str, Any]:
    """Return the golden entries to write: new code counts where its revision is new too."""
    return {
        name: entry
        if name not in golden
        or {name, "all"} & set(same_answers)
        or entry["revision"] != golden[name]["revision"]
        else golden[name]
        for name, entry in now.items()
    }


def complaints(golden: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return what is wrong, an entry each, with what to do."""
    found = []
    for name, entry in now.items():
        before = golden.get(name)
        if before == entry:
            continue
        if before is None or before["revision"] != entry["revision"]:
            found.append(f"{name}: its entry is not up to date; run this with --update-golden")
            continue
        modules = _changed(before["modules"], entry["modules"])
        found.append(
            f"{name}: its code changed ({', '.join(modules)}) and its revision did not. If one of"
            " its answers may differ now, raise its revision (ALGORITHM_REVISIONS in"
            " reprise/cache/key.py, or a *_REVISION beside the code) and run this with"
            f" --update-golden; if none can, --update-golden --same-answers {name}"
        )
    found += [f"{name}: there is no such executor any more" for name in golden.keys() - now.keys()]
    return found


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def written(entries: Mapping[str, Any]) -> str:
    return json.dumps(dict(sorted(entries.items())), indent=1, sort_keys=True) + "\n"


def names(values: Iterable[str]) -> set[str]:
    return {name for value in values for name in value.split(",")}


def test_changed_code_has_a_new_revision(
    update_golden: bool, same_answers: tuple[str, ...]
) -> None:
    golden = json.loads(GOLDEN.read_text("utf-8")) if GOLDEN.exists() else {}
    now = {name: entry_of(name) for name in ROOTS}
    if update_golden:
        golden = merged(golden, now, names(same_answers))
        GOLDEN.write_text(written(golden), "utf-8")

    assert complaints(golden, now) == []


def test_every_executor_with_a_revision_is_guarded() -> None:
    assert {step for step in ALGORITHM_REVISIONS if step in EXECUTORS} <= set(ROOTS)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        (
            StepType.VIDEO_ANALYZE,
            {
                "pipelines.steps.video_analyze:sources",
                "reprise.model.workflow:VideoAnalyzeConfig",
                "resources.video_analyzer:SHOTS_REVISION",
                "resources.faster_whisper_speech:SPEECH_REVISION",
            },
        ),
        (StepType.EDIT_ROOM, {"reprise.media.edit_plan:edit_decision"}),
        (
            StepType.VIDEO_COMPILE,
            {"reprise.media.captions:srt", "reprise.media.render_units:UNIT_REVISION"},
        ),
        ("heuristic", {"reprise.agents.heuristics.hook:hook_analyst"}),
        (
            "search",
            {
                "reprise.context.search_words:query_terms",
                "reprise.context.search_words:snippet",
                "reprise.model.search:SEARCH_REVISION",
                "resources.sqlite_project_index:_SEARCH",
            },
        ),
        ("tools", {"reprise.tools.project_read:read_project_file"}),
        (
            "requests",
            {
                "reprise.agents.requests_revision:REQUESTS_REVISION",
                "reprise.agents.anthropic_schema:native_schema",
                "reprise.agents.chat_requests:_form",
            },
        ),
        (
            "json_tools",
            {"reprise.agents.json_tools:REVISION", "reprise.agents.answers:whole_value"},
        ),
    ],
)
def test_closures_reach_what_makes_the_answer(name: str, parts: set[str]) -> None:
    assert parts <= set(closure_of(name).parts)


@pytest.mark.parametrize("provider", [OpenAICompatibleProvider, AnthropicProvider])
def test_the_revisions_of_requests_are_in_the_identity_of_who_sends_them(
    provider: type[OpenAICompatibleProvider | AnthropicProvider],
) -> None:
    endpoint = Endpoint(provider_id="p", base_url="http://127.0.0.1:9/v1", timeout_seconds=1)
    asked = JsonToolProvider(provider(endpoint, model="m"))
    assert asked.identity().revision.split(",") == [
        "schema=1",
        f"requests={REQUESTS_REVISION}",
        f"tools=json:{JSON_REVISION}",
    ]


BEFORE = {"A": {"revision": {"r": "1"}, "closure_digest": "x", "modules": {"m": "1", "n": "1"}}}
EDITED = {"A": {"revision": {"r": "1"}, "closure_digest": "y", "modules": {"m": "2", "n": "1"}}}
RAISED = {"A": {**EDITED["A"], "revision": {"r": "2"}}}


def test_an_edit_without_a_new_revision_is_said_and_not_taken_over() -> None:
    [said] = complaints(BEFORE, EDITED)

    assert said.startswith("A: its code changed (m) and its revision did not.")
    assert merged(BEFORE, EDITED, ()) == BEFORE


def test_an_edit_with_a_new_revision_is_taken_over() -> None:
    assert complaints(BEFORE, RAISED) == [
        "A: its entry is not up to date; run this with --update-golden"
    ]
    assert merged(BEFORE, RAISED, ()) == RAISED
    assert complaints(RAISED, RAISED) == []


def test_an_edit_that_changes_no_answer_is_taken_over_when_it_is_named() -> None:
    assert merged(BEFORE, EDITED, {"A"}) == EDITED
    assert merged(BEFORE, EDITED, {"all"}) == EDITED
    assert merged(BEFORE, EDITED, {"B"}) == BEFORE


def test_a_new_executor_is_taken_over_and_a_gone_one_is_said() -> None:
    assert merged({}, EDITED, ()) == EDITED
    assert complaints(BEFORE, {}) == ["A: there is no such executor any more"]


def test_the_search_revision_is_part_of_what_searches_are_answered_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert revision_of("search") == {"reprise.model.search:SEARCH_REVISION": SEARCH_REVISION}
    before = index_revision({"a.md": "x"})
    monkeypatch.setattr("reprise.model.search.SEARCH_REVISION", "another")
    assert index_revision({"a.md": "x"}) != before
