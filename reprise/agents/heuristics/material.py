"""What the rules read: the inputs of an agent, taken apart once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pydantic import JsonValue, ValidationError

from reprise.agents.heuristics.words import is_filler
from reprise.errors import InputUnresolved
from reprise.media.spoken import Footage, SpokenWord, footage_of
from reprise.model.conversation import AgentInputs, PriorOutput
from reprise.model.media import Loudness, Shot, VideoAnalysis
from reprise.model.workflow import StepType

CLARITY_MIN = 0.5
"""A sentence whose words' mean probability is lower was guessed."""

SPEECH_LUFS = -18.0
"""Level at which speech is followed best."""


@dataclass(frozen=True)
class Line:
    """A spoken sentence with what the rules weigh."""

    footage: Footage
    """Its source."""
    id: str
    """Its id."""
    text: str
    """What is said."""
    words: tuple[SpokenWord, ...]
    """Its words, in corrected times."""
    clarity: float
    """Mean probability of its words."""
    place: float
    """Where in its source it begins, 0 to 1."""

    @property
    def start(self) -> float:
        """When it begins."""
        return self.words[0].start

    @property
    def end(self) -> float:
        """When it ends."""
        return self.words[-1].end

    @property
    def seconds(self) -> float:
        """How long it is spoken."""
        return self.end - self.start

    @property
    def unusable(self) -> str:
        """Why it cannot be shown; empty when it can."""
        if is_filler(self.text):
            return "it is said around the recording"
        if self.clarity < CLARITY_MIN:
            return f"the recogniser was unsure ({self.clarity:.2f})"
        return self.footage.blocked.get(self.id, "")

    @property
    def audibility(self) -> float:
        """How easily its source is heard, 0 to 1."""
        return audibility(self.footage.source.loudness)

    @property
    def shot(self) -> Shot | None:
        """The shot in which it begins."""
        for shot in self.footage.source.shots:
            if shot.start_seconds <= self.start < shot.end_seconds:
                return shot
        return None


@dataclass(frozen=True, eq=False)
class Material:
    """The inputs of an agent."""

    inputs: AgentInputs
    """As they came."""
    analysis: VideoAnalysis
    """The footage."""

    @cached_property
    def footages(self) -> Mapping[str, Footage]:
        """The sources by id."""
        return {source.id: footage_of(source) for source in self.analysis.sources}

    @cached_property
    def lines(self) -> Sequence[Line]:
        """All sentences, source by source, by rising time."""
        return [line for footage in self.footages.values() for line in _lines(footage)]

    @cached_property
    def line_of(self) -> Mapping[str, Line]:
        """The sentences by id."""
        return {line.id: line for line in self.lines}

    @cached_property
    def shot_of(self) -> Mapping[str, tuple[Footage, Shot]]:
        """The shots by id, with their sources."""
        return {
            shot.id: (footage, shot)
            for footage in self.footages.values()
            for shot in footage.source.shots
        }

    @property
    def request(self) -> str:
        """The user's free text."""
        return self.inputs.user_request

    def answer(self, agent_type: str) -> Mapping[str, JsonValue]:
        """Return the latest answer of an agent type; empty when there is none."""
        for item in reversed(self.inputs.prior):
            if item.agent_type == agent_type and isinstance(item.output, dict):
                return item.output
        return {}

    def figure(self, name: str, default: float) -> float:
        """Return a figure of the step."""
        value = self.inputs.parameters.get(name)
        ok = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
        return float(value) if ok and isinstance(value, int | float) else default


def material_of(inputs: AgentInputs) -> Material:
    """Return the inputs, taken apart.

    Raises:
        InputUnresolved: There is no footage analysis among the prior outputs.
    """
    for item in reversed(inputs.prior):
        if item.type == StepType.VIDEO_ANALYZE.value:
            return Material(inputs, _analysis(item))
    message = (
        "the heuristic rules need a VideoAnalyze step among the step's inputs; add its order to "
        "selected_prior_step_orders"
    )
    raise InputUnresolved(message)


def rows(answer: Mapping[str, JsonValue], name: str) -> list[Mapping[str, JsonValue]]:
    """Return the objects of a list in an answer; whatever else stands there is passed over."""
    value = answer.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def texts(value: JsonValue) -> list[str]:
    """Return the texts of a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def scores(answer: Mapping[str, JsonValue], name: str, key: str) -> dict[str, float]:
    """Return id → score of the objects of a list in an answer."""
    found: dict[str, float] = {}
    for row in rows(answer, name):
        subject, score = row.get(key), row.get("score")
        if isinstance(subject, str) and isinstance(score, int | float):
            found[subject] = float(score)
    return found


def audibility(loudness: Loudness | None) -> float:
    """Return how easily a source is heard, 0 to 1: by its level, its range and its peaks."""
    if loudness is None or loudness.integrated_lufs is None:
        return 0.0
    value = 1.0 - min(0.6, abs(loudness.integrated_lufs - SPEECH_LUFS) / 60)
    value -= min(0.2, max(0.0, (loudness.range_lu or 0.0) - 12) / 50)
    return value - (0.1 if (loudness.true_peak_dbtp or -1.0) > 0 else 0.0)


def _analysis(item: PriorOutput) -> VideoAnalysis:
    try:
        return VideoAnalysis.model_validate(item.output)
    except ValidationError as error:
        message = f"step {item.order} ({item.label}) gave no footage analysis: {error.errors()[0]}"
        raise InputUnresolved(message) from error


def _lines(footage: Footage) -> list[Line]:
    transcript = footage.source.transcript
    if transcript is None:
        return []
    return [
        Line(
            footage=footage,
            id=sentence.id,
            text=sentence.text,
            words=footage.by_sentence[sentence.id],
            clarity=sum(word.probability for word in sentence.words) / len(sentence.words),
            place=min(1.0, sentence.start_seconds / max(footage.end_seconds, 0.001)),
        )
        for sentence in transcript.sentences
        if sentence.id in footage.by_sentence
    ]
