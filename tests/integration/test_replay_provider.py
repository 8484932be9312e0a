"""Model calls recorded and replayed: through the loop, over a loopback endpoint, across damage."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pipelines.definitions import Wiring
from reprise.agents.loop import AgentTask
from reprise.errors import BadInput, ProviderError, UnknownName
from reprise.model.agent import AgentDefinition, ToolGroup
from reprise.model.conversation import (
    AgentInputs,
    Message,
    ModelReply,
    ModelRequest,
    ProjectDocument,
    ToolCall,
)
from reprise.model.result import Usage
from reprise.ports import ModelProvider
from resources.model_call import Endpoint
from resources.openai_provider import OpenAICompatibleProvider
from resources.replay_provider import RecordingProvider, ReplayProvider
from resources.scripted_provider import ScriptedProvider
from resources.settings import load_settings
from tests.agent_loop import run_agent
from tests.model_endpoint import EndpointServer, endpoint_server

KEY = "sk-secret-0123456789"
USAGE = Usage(input_uncached=10, output=5, calls=1, cost_micros=70)
AGENT = AgentDefinition(
    id="titler",
    agent_type="titler",
    system_prompt="Give a title.",
    tool_groups=frozenset({ToolGroup.PROJECT_READ}),
    output_schema={"type": "object", "required": ["title"]},
)
INPUTS = AgentInputs(documents=(ProjectDocument(name="brief.md", text="Title: Go"),))


def reply(text: str, *calls: ToolCall) -> ModelReply:
    return ModelReply(text=text, tool_calls=calls, finish_reason="stop", usage=USAGE, model="m-1")


def script() -> list[ModelReply]:
    call = ToolCall(id="c1", name="read_project_file", arguments='{"name": "brief.md"}')
    return [reply("", call), reply("no"), reply('{"title": "Go"}')]


def request(text: str, **changes: Any) -> ModelRequest:
    values: dict[str, Any] = {
        "agent": AGENT,
        "system_prompt": "Give a title.",
        "messages": (Message(role="user", content=text),),
    }
    return ModelRequest(**{**values, **changes})


def never() -> bool:
    return False


def ask(provider: ModelProvider, text: str, **changes: Any) -> str:
    return provider.complete(request(text, **changes), cancelled=never).text


def test_a_run_with_tools_and_a_correction_is_replayed_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    task = AgentTask(agent=AGENT, inputs=INPUTS, task="Name it.")
    recording = RecordingProvider("rec", ScriptedProvider(script()), path)
    recorded = run_agent(task, recording, cancelled=never)

    replayed = run_agent(task, ReplayProvider("rec", path), cancelled=never)

    assert replayed.output == recorded.output == {"title": "Go"}
    assert (replayed.turns, replayed.notes) == (recorded.turns, recorded.notes)
    assert recorded.usage.cost_micros == 210
    assert replayed.usage == recorded.usage.model_copy(update={"cost_micros": 0})
    assert replayed.model == "m-1 (replayed)"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sum("request" in line for line in lines) == 3
    parts = [line["part"] for line in lines if "part" in line]
    assert len(parts) == len(set(parts)), "each part stands once"


def test_a_request_that_was_made_twice_gets_its_answers_in_order(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recording = RecordingProvider("rec", ScriptedProvider(["one", "two"]), path)
    assert [ask(recording, "Hi") for _ in range(2)] == ["one", "two"]
    replay = ReplayProvider("rec", path)
    assert [ask(replay, "Hi") for _ in range(3)] == ["one", "two", "two"]


def test_deadlines_and_values_are_no_part_of_a_request(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    ask(RecordingProvider("rec", ScriptedProvider(["one"]), path), "Hi", timeout_seconds=9.0)
    assert ask(ReplayProvider("rec", path), "Hi", timeout_seconds=3.0, inputs=INPUTS) == "one"


def test_what_differs_is_told_exactly(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recording = RecordingProvider("rec", ScriptedProvider(["one"] * 3), path)
    ask(recording, "Write about trees.")
    replay = ReplayProvider("rec", path)
    with pytest.raises(ProviderError) as caught:
        ask(replay, "Write about trams.")
    assert f"not in the recording {str(path)!r}: message 1 `content` differs from character" in str(
        caught.value
    )
    assert "rees." in str(caught.value)
    assert "rams." in str(caught.value)
    assert caught.value.transient is False
    hot = AGENT.model_copy(
        update={"parameters": AGENT.parameters.model_copy(update={"temperature": 1.0})}
    )
    with pytest.raises(ProviderError, match=r"`parameters` `temperature` differs.*null.*1\.0"):
        ask(replay, "Write about trees.", agent=hot)
    with pytest.raises(ProviderError, match="there are 2 messages, recorded are 1"):
        ask(replay, "", messages=(*request("Write about trees.").messages,) * 2)
    stranger = AGENT.model_copy(update={"id": "stranger"})
    with pytest.raises(
        ProviderError, match="no call of agent 'stranger'; it holds calls of titler"
    ):
        ask(replay, "Hi", agent=stranger)


def test_a_torn_last_line_is_dropped_and_recording_goes_on_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recording = RecordingProvider("rec", ScriptedProvider(["one", "two", "three"]), path)
    ask(recording, "first")
    whole = path.read_bytes()
    ask(recording, "second")
    path.write_bytes(path.read_bytes()[:-7])
    replay = ReplayProvider("rec", path)
    assert ask(replay, "first") == "one"
    with pytest.raises(ProviderError):
        ask(replay, "second")
    ask(RecordingProvider("rec", ScriptedProvider(["new"]), path), "third")
    assert path.read_bytes().startswith(whole)
    assert ask(ReplayProvider("rec", path), "third") == "new"


def test_a_file_that_is_no_recording_is_bad_input_and_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("my notes\n")
    bare = tmp_path / "bare.txt"
    bare.write_text("{ my notes")
    asked = ScriptedProvider(["x"])
    with pytest.raises(BadInput, match="its last line is none"):
        ask(RecordingProvider("r", asked, bare), "Hi")
    assert asked.requests == (), "what cannot be recorded is not paid for"
    assert bare.read_text() == "{ my notes"
    for make in (
        lambda: ReplayProvider("r", path),
        lambda: ask(RecordingProvider("r", ScriptedProvider(["x"]), path), "Hi"),
    ):
        with pytest.raises(BadInput, match=r"notes\.txt:1: no line of a recording"):
            make()
    assert path.read_text() == "my notes\n"
    with pytest.raises(BadInput, match="cannot be read"):
        ReplayProvider("r", tmp_path / "none.jsonl")


def test_a_recording_is_made_at_the_first_call_and_not_by_a_plan(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "r.jsonl"
    recording = RecordingProvider("rec", ScriptedProvider(["x"]), path)
    recording.identity()
    assert not path.parent.exists()
    ask(recording, "Hi")
    assert path.exists()


def test_threads_record_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recording = RecordingProvider("rec", ScriptedProvider(["x"] * 40), path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: ask(recording, f"request {number}"), range(40)))
    replay = ReplayProvider("rec", path)
    assert [ask(replay, f"request {number}") for number in range(40)] == ["x"] * 40


@pytest.fixture
def server() -> Iterator[EndpointServer]:
    with endpoint_server() as server:
        yield server


def test_a_real_endpoint_is_recorded_without_its_key_and_replayed_without_a_network(
    server: EndpointServer, tmp_path: Path
) -> None:
    path = tmp_path / "r.jsonl"
    inner = OpenAICompatibleProvider(Endpoint("far", server.base_url, KEY), model="tiny-1")
    recording = RecordingProvider("rec", inner, path)
    assert ask(recording, "Hi") == "hello"
    server.responder = lambda asked, _: asked.answer({}, status=500)
    with pytest.raises(ProviderError):
        ask(recording, "Ho")
    inner.close()
    server.server_close()
    assert KEY.encode() not in path.read_bytes()
    assert path.stat().st_mode & 0o077 == 0
    replay = ReplayProvider("rec", path)
    assert ask(replay, "Hi") == "hello"
    with pytest.raises(ProviderError, match="message 1 `content` differs"):
        ask(replay, "Ho")


def test_the_settings_choose_recording_or_replay(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script_path, path = tmp_path / "script.json", tmp_path / "r.jsonl"
    script_path.write_text('["one"]')
    monkeypatch.setenv("REPRISE_HOME", str(tmp_path))
    monkeypatch.setenv("REPRISE_PROVIDERS__FAR__KIND", "scripted")
    monkeypatch.setenv("REPRISE_PROVIDERS__FAR__SCRIPT", str(script_path))
    monkeypatch.setenv("REPRISE_PROVIDERS__REC__KIND", "replay")
    monkeypatch.setenv("REPRISE_PROVIDERS__REC__RECORDING", str(path))
    monkeypatch.setenv("REPRISE_PROVIDERS__REC__RECORDS", "far")
    assert ask(Wiring(load_settings()).provider("rec"), "Hi") == "one"
    monkeypatch.delenv("REPRISE_PROVIDERS__REC__RECORDS")
    wiring = Wiring(load_settings())
    assert ask(wiring.provider("rec"), "Hi") == "one"
    assert wiring.provider("rec").identity().kind == "replay"
    monkeypatch.setenv("REPRISE_PROVIDERS__REC__RECORDS", "rec")
    with pytest.raises(UnknownName, match="is a replay itself"):
        Wiring(load_settings()).provider("rec")


def test_another_recording_is_another_identity(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.jsonl", "b.jsonl")]
    for path in paths:
        ask(RecordingProvider("rec", ScriptedProvider([path.name]), path), "Hi")
    one, other = (ReplayProvider("rec", path).identity() for path in paths)
    assert one.revision != other.revision
    assert one == ReplayProvider("rec", paths[0]).identity()


def test_a_recording_that_others_could_read_is_tightened_before_it_is_written(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r.jsonl"
    path.touch()
    path.chmod(0o644)
    ask(RecordingProvider("rec", ScriptedProvider(["hello"]), path), "Hi")
    assert path.stat().st_mode & 0o777 == 0o600
