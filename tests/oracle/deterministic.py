"""Agents and media tools whose answers are a function of everything that they may see.

Two equal questions get equal answers, two different ones get different answers (but for agents
that are asked to be dull), so a stale answer cannot hide behind a model's mood.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import JsonValue

from reprise.errors import ProviderError
from reprise.model.conversation import Message, ModelReply, ModelRequest, ProviderIdentity, ToolCall
from reprise.model.measures import AnalyzeOptions, FrameMeasures, MeasuredShot, MediaProbe
from reprise.model.media import Loudness, Sentence, Transcript, Word
from reprise.model.render import RenderedFilm, RenderPlan
from reprise.model.result import Usage
from reprise.ports import Cancelled, Progress

USAGE = Usage(input_uncached=90, output=30, calls=1, cost_micros=700)
FRAMES = 1500
RATE = "25"
INJECTED = "this failure was put in by the test"


def digest_of(value: JsonValue) -> str:
    """A short digest of a value; the order of keys counts, as it does in a prompt."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:12]


class DeterministicProvider:
    """Answers with a digest of what it was shown, after reading all that its tools can read.

    An agent whose id begins with `constant` always says the same, one that begins with `coarse` has
    two answers; `director` answers as an edit room's last agent does.

    Args:
        provider_id: Its id.
        model: Model that answers when the agent names none.
        reads_values: Its answer depends on the inputs as values too, as the heuristics' does.
    """

    def __init__(
        self, provider_id: str = "rule", *, model: str = "rule-1", reads_values: bool = True
    ) -> None:
        self.provider_id = provider_id
        self.model = model
        self.reads_values = reads_values
        self.context_tokens: int | None = None
        self.calls: Counter[str] = Counter()
        self.fails: set[str] = set()
        self.before_call: Callable[[str], None] = lambda _agent: None

    def identity(self) -> ProviderIdentity:
        return ProviderIdentity(
            id=self.provider_id,
            kind="scripted",
            model=self.model,
            reads_values=self.reads_values,
        )

    def complete(self, request: ModelRequest, *, cancelled: Cancelled) -> ModelReply:
        name = request.agent.id
        self.calls[name] += 1
        self.before_call(name)
        if name in self.fails:
            raise ProviderError(INJECTED)
        model = request.agent.parameters.model or self.model
        calls = _wanted_tools(request)
        return ModelReply(
            text="" if calls else self._text(request),
            tool_calls=calls,
            finish_reason="tool_calls" if calls else "stop",
            usage=USAGE,
            model=model,
        )

    def _text(self, request: ModelRequest) -> str:
        name = request.agent.id
        word = digest_of(self._seen(request))
        if name.startswith("constant"):
            word = "same"
        if name.startswith("coarse"):
            word = "even" if int(word, 16) % 2 else "odd"
        if name.startswith("director"):
            shots = [f"v1.s00{1 + int(word[:4], 16) % 3}", f"v1.s00{1 + int(word[4:8], 16) % 3}"]
            cut = {"sentence_ids": [], "shot_ids": shots, "reason": word}
            return json.dumps({"title": word, "cuts": [cut]})
        # The same characters with and without a schema: a text and an object that print alike.
        return f'{{"a":"{word}","b":1}}'

    def _seen(self, request: ModelRequest) -> JsonValue:
        agent = request.agent
        seen: list[JsonValue] = [
            self.provider_id,
            self.model,
            agent.id,
            agent.agent_type,
            agent.output_schema_name,
            agent.parameters.model_dump(mode="json"),
            request.system_prompt,
            [message.model_dump(mode="json") for message in request.messages],
            [tool.model_dump(mode="json") for tool in request.tools],
            request.tool_choice,
            # As text: the order of a schema's properties is the order that a model writes them in.
            json.dumps(request.output_schema),
        ]
        if self.reads_values:
            inputs = request.inputs.model_dump(mode="json")
            seen.append(inputs)
        return seen


FIRST: Mapping[str, str] = {
    "list_project_files": "{}",
    "search_project_files": '{"query": "brief note one two"}',
    "list_prior_steps": "{}",
    "ListSandboxFiles": "{}",
}
"""What an agent asks first, of the tools that it has."""


def _wanted_tools(request: ModelRequest) -> tuple[ToolCall, ...]:
    """List files and steps and search, then read all that there is, where the agent may."""
    offered = {tool.name for tool in request.tools}
    results = [message for message in request.messages if message.role == "tool"]
    if not any(message.tool_calls for message in request.messages):
        wanted = [(tool, arguments) for tool, arguments in FIRST.items() if tool in offered]
        if not wanted and "WriteSandboxFile" in offered:
            wanted = _writings(request)
    elif sum(bool(message.tool_calls) for message in request.messages) == 1:
        wanted = [call for result in results for call in _readings(result)]
        wanted += _writings(request) if "WriteSandboxFile" in offered else []
    else:
        wanted = []
    return tuple(
        ToolCall(id=f"c{len(results)}-{place}", name=tool, arguments=arguments)
        for place, (tool, arguments) in enumerate(wanted)
    )


def _readings(result: Message) -> list[tuple[str, str]]:
    listed = json.loads(result.content)
    rows = listed.get("files", [])
    if any("path" in row for row in rows):
        return [("ReadSandboxFile", json.dumps({"path": row["path"]})) for row in rows]
    calls = [
        ("read_project_file" if row["readable"] else "read_project_transcript", row["name"])
        for row in rows
        if row["readable"] or row.get("has_transcript")
    ]
    found = [(tool, json.dumps({"name": name})) for tool, name in calls]
    return found + [
        ("read_prior_output", json.dumps({"order": row["order"]}))
        for row in listed.get("steps", [])
    ]


def _writings(request: ModelRequest) -> list[tuple[str, str]]:
    """Write what depends on all that the agent was shown, to one of two files."""
    shown = [message.content for message in request.messages]
    word = digest_of([request.agent.id, request.system_prompt, *shown])
    path = "a.txt" if int(word[0], 16) % 2 else "src/c.txt"
    return [("WriteSandboxFile", json.dumps({"path": path, "content": f"{word}\n"}))]


def _content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


class TwinAnalyzer:
    """Measures a file by a digest of its bytes and of the options."""

    def __init__(self) -> None:
        self.version = "1"
        self.calls = 0

    def toolchain(self) -> Mapping[str, str]:
        return {"ffmpeg": self.version}

    def probe(self, path: Path) -> MediaProbe:
        return MediaProbe(
            duration_seconds=60.0,
            has_video=True,
            has_audio=True,
            width=320,
            height=180,
            frame_rate=RATE,
            frame_count=FRAMES,
        )

    def analyze(
        self,
        path: Path,
        options: AnalyzeOptions,
        workdir: Path,
        *,
        progress: Progress,
        cancelled: Cancelled,
    ) -> FrameMeasures:
        self.calls += 1
        word = digest_of([self.version, _content(path), options.model_dump(mode="json")])
        (workdir / "speech.wav").write_text(word)
        return FrameMeasures(
            frame_count=FRAMES,
            frame_rate=RATE,
            shots=tuple(self._shot(word, place, workdir) for place in range(3)),
            black=(),
            freeze=(),
            silence=(),
            loudness=Loudness(
                integrated_lufs=-20.0 - int(word[0], 16), range_lu=3.0, true_peak_dbtp=-1.0
            ),
        )

    def _shot(self, word: str, place: int, workdir: Path) -> MeasuredShot:
        thumbnail = workdir / f"{place}.jpg"
        thumbnail.write_text(f"{word} {place}")
        return MeasuredShot(
            start_frame=place * 500,
            end_frame=(place + 1) * 500,
            luma=100.0 + int(word[place], 16),
            saturation=0.5,
            clipped=0.0,
            motion=4.0,
            thumbnail=thumbnail,
        )


class TwinSpeech:
    """Hears one sentence: a digest of the sound."""

    def __init__(self) -> None:
        self.version = "1"

    def identity(self) -> Mapping[str, str]:
        return {"engine": self.version}

    def transcribe(
        self,
        wav: Path,
        *,
        language: str | None,
        source_id: str,
        progress: Progress,
        cancelled: Cancelled,
    ) -> Transcript:
        text = digest_of([self.version, language, wav.read_text()])
        word = Word(text=text, start_seconds=1.0, end_seconds=2.0, probability=1.0)
        sentence = Sentence(
            id=f"{source_id}.t001", start_seconds=1.0, end_seconds=2.0, text=text, words=(word,)
        )
        return Transcript(language="en", language_probability=1.0, sentences=(sentence,))


class TwinRenderer:
    """Writes a film that says what it was made of."""

    def __init__(self) -> None:
        self.version = "1"
        self.calls = 0

    def toolchain(self) -> Mapping[str, str]:
        return {"ffmpeg": self.version}

    def render(
        self,
        plan: RenderPlan,
        workdir: Path,
        *,
        reuse_units: bool,
        unit_prefix: str,
        progress: Progress,
        cancelled: Cancelled,
    ) -> RenderedFilm:
        self.calls += 1
        workdir.mkdir(parents=True, exist_ok=True)
        path = workdir / "film.mp4"
        what = plan.model_dump(mode="json", exclude={"sources": {"__all__": {"path"}}})
        bytes_read = [_content(source.path) for source in plan.sources]
        path.write_text(json.dumps([self.version, what, bytes_read]))
        frames = sum(cut.end_frame - cut.start_frame for cut in plan.cuts)
        return RenderedFilm(
            path=path,
            frame_count=frames,
            duration_seconds=frames / 25,
            loudness=None,
            units_rendered=len(plan.cuts),
            units_reused=0,
        )
