"""The heuristic rules: valid by the shipped schemas, and moved by each thing that they read."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from reprise.agents.answer_schema import answer_schema
from reprise.agents.heuristics.brief import AUDIENCE, AVOID, GOAL, TITLE, USE, brand_of, brief_of
from reprise.agents.heuristics.material import material_of
from reprise.agents.heuristics.rules import RULES, TOOL_RULES
from reprise.media.edit_plan import edit_decision
from reprise.model.conversation import AgentInputs, PriorOutput, ProjectDocument
from reprise.model.media import Loudness, VideoAnalysis
from reprise.model.workflow import EditRoomConfig
from resources.definition_files import load_definitions
from tests.analyses import TALK, silent_film, talk

WORKFLOWS = Path(__file__).parents[3] / "workflows"
ANALYSTS = ("content", "audience", "brand", "hook", "visual")
ROOM = ("story-editor", "pacing-critic", "director")
BRIEF = """# Brief: Take it apart

## Audience
Young makers who like to remix films.

## Goal
They download the film.

- **Length:** 20 to 24 seconds
- **Tone:** warm, plain
"""
BRAND = """# Open Film brand notes

Tagline: Free to share.

| use | avoid |
| --- | --- |
| free, share | studio |
| power | "permission" (too legal) |
"""
DOCUMENTS = (
    ProjectDocument(name="brief.md", text=BRIEF),
    ProjectDocument(name="brand.md", text=BRAND),
)
PARAMETERS: dict[str, JsonValue] = {
    "target_seconds": 25.0,
    "seconds_min": 15.0,
    "seconds_max": 40.0,
    "cuts_min": 4,
}
DEFINITIONS = load_definitions(WORKFLOWS)


def answers(
    analysis: VideoAnalysis,
    documents: tuple[ProjectDocument, ...] = DOCUMENTS,
    request: str = "",
) -> dict[str, Any]:
    """Return the answers of all eight agents, each fed as the workflow feeds it."""
    first = PriorOutput(
        order=1,
        label="video_analyze",
        type="VideoAnalyze",
        output=analysis.model_dump(mode="json"),
    )
    found: dict[str, Any] = {}
    prior = [first]
    for name in (*ANALYSTS, *ROOM):
        agent = DEFINITIONS.agent(name)
        in_room = name in ROOM
        inputs = AgentInputs(
            user_request=request,
            prior=tuple(prior) if in_room else (first,),
            documents=documents if agent.tool_groups else (),
            parameters=PARAMETERS if in_room else {},
        )
        found[name] = RULES[agent.agent_type](material_of(inputs))
        schema = answer_schema(agent.output_schema, inputs.prior)
        assert schema is not None
        jsonschema.Draft202012Validator(schema).validate(found[name])
        prior.append(
            PriorOutput(
                order=len(prior) + 1,
                label=name,
                type="Agent",
                agent_type=agent.agent_type,
                output=found[name],
            )
        )
    return found


def with_line(number: int, text: str) -> VideoAnalysis:
    lines = [(text, pause) if at == number else (said, pause) for at, (said, pause) in LINES]
    return talk(lines=lines)


LINES = list(enumerate(TALK, start=1))
BASE = talk()


def with_loudness(**changes: float | None) -> VideoAnalysis:
    source = BASE.sources[0]
    figures: Mapping[str, float | None] = {
        "integrated_lufs": -21.0,
        "range_lu": 6.0,
        "true_peak_dbtp": -3.0,
        **changes,
    }
    loudness = Loudness.model_validate(figures)
    changed = source.model_copy(update={"loudness": loudness})
    return BASE.model_copy(update={"sources": (changed,)})


@pytest.mark.parametrize(
    ("what", "changed", "movers"),
    [
        (
            "transcript",
            lambda: answers(with_line(7, "Why did 3 million people pay for the cheap studio?")),
            {*ANALYSTS, *ROOM},
        ),
        (
            "shot times",
            lambda: answers(talk(shot_starts=[0.0, 3.0, 7.5, 12.0, 21.0, 30.0, 41.0])),
            {"hook", "visual", "story-editor", "director"},
        ),
        (
            "loudness",
            lambda: answers(with_loudness(integrated_lufs=-34.0, range_lu=18.0)),
            {"content", "hook", "story-editor", "pacing-critic", "director"},
        ),
        (
            "brief",
            lambda: answers(
                BASE,
                (
                    ProjectDocument(
                        name="brief.md",
                        text="# Artists at work\n\nAudience: artists in Amsterdam\n"
                        "Length: 15 seconds\n",
                    ),
                    DOCUMENTS[1],
                ),
            ),
            {"audience", "brand", "story-editor", "pacing-critic", "director"},
        ),
        (
            "brand notes",
            lambda: answers(
                BASE, (DOCUMENTS[0], ProjectDocument(name="brand.md", text="Avoid: free, share\n"))
            ),
            {"brand", "story-editor", "director"},
        ),
        (
            "black span",
            lambda: answers(talk(black=[(27.5, 29.5)])),
            {"content", "audience", "hook", "visual", "story-editor", "pacing-critic", "director"},
        ),
        (
            "word probabilities",
            lambda: answers(_unsure(7)),
            {"content", "audience", "hook", "story-editor", "pacing-critic", "director"},
        ),
        (
            "request",
            lambda: answers(BASE, request="A 16 second clip about the rabbit and the butterfly"),
            {"audience", "story-editor", "pacing-critic", "director"},
        ),
    ],
)
def test_each_thing_moves_the_answers_of_those_who_read_it(
    what: str, changed: Callable[[], dict[str, Any]], movers: set[str]
) -> None:
    before, after = answers(BASE), changed()
    moved = {name for name in before if before[name] != after[name]}
    assert movers <= moved, f"{what} did not move {movers - moved}"


def test_what_an_analyst_does_not_read_does_not_move_it() -> None:
    before = answers(BASE)
    quiet = answers(with_loudness(integrated_lufs=-30.0))
    unbriefed = answers(BASE, ())
    assert before["visual"] == quiet["visual"]
    assert before["audience"] == quiet["audience"]
    for name in ("content", "hook", "visual"):
        assert before[name] == unbriefed[name]


def test_equal_inputs_give_equal_answers() -> None:
    assert answers(talk()) == answers(talk())


def test_the_edit_opens_with_the_question_and_keeps_to_the_brief() -> None:
    found = answers(BASE)
    decision = edit_decision(found["director"], BASE, EditRoomConfig())
    assert decision.title == "Take it apart"
    assert decision.cuts[0].sentence_ids == ("v1.t002",)
    used = {name for cut in decision.cuts for name in cut.sentence_ids}
    # Said around the recording, and wording that the brand avoids.
    assert not used & {"v1.t001", "v1.t008", "v1.t005", "v1.t010"}
    seconds = sum(cut.end_frame - cut.start_frame for cut in decision.cuts) / 25
    assert 19 <= seconds <= 24.5
    assert len(decision.cuts) >= 4
    assert decision.notes == ()


def test_wording_to_avoid_is_found_in_its_inflected_forms() -> None:
    found = answers(BASE)
    assert found["brand"]["words_to_avoid"] == [
        {"word": "studio", "sentence_ids": ["v1.t005"]},
        {"word": "permission", "sentence_ids": ["v1.t010"]},
    ]


def test_without_a_brief_nothing_is_made_up_about_the_audience() -> None:
    found = answers(BASE, ())
    assert found["audience"]["audience"] == ""
    assert found["audience"]["goal"] == ""
    assert found["audience"]["target_seconds"] is None
    assert found["brand"]["tagline"] is None


def test_footage_without_speech_is_told_by_its_shots() -> None:
    found = answers(silent_film(), ())
    assert found["content"]["key_moments"] == []
    assert "Nothing is said in 60.0 seconds" in found["content"]["summary"]
    assert found["hook"]["hooks"][0]["kind"] == "picture"
    assert all(cut["shot_ids"] for cut in found["director"]["cuts"])
    moved = answers(silent_film(shot_starts=[0.0, 20.0, 25.0, 40.0]), ())
    assert moved["director"]["cuts"] != found["director"]["cuts"]


def test_the_critic_tightens_what_is_too_long_and_the_director_follows() -> None:
    first = PriorOutput(
        order=1, label="a", type="VideoAnalyze", output=BASE.model_dump(mode="json")
    )
    ids = ["v1.t002", "v1.t003", "v1.t004", "v1.t006", "v1.t007", "v1.t009", "v1.t011", "v1.t012"]
    cuts: list[JsonValue] = [
        {"sentence_ids": [name], "shot_ids": [], "reason": "proposed"} for name in ids
    ]
    proposal = PriorOutput(
        order=7,
        label="story-editor",
        type="Agent",
        agent_type="story_editor",
        output={"approach": "All.", "cuts": cuts, "alternates": []},
    )
    inputs = AgentInputs(prior=(first, proposal), parameters={**PARAMETERS, "target_seconds": 18.0})
    review: Any = RULES["pacing_critic"](material_of(inputs))
    assert review["verdict"] == "tighten"
    assert review["drop_sentence_ids"]
    assert "v1.t002" not in review["drop_sentence_ids"]
    said = PriorOutput(
        order=7, label="critic", type="Agent", agent_type="pacing_critic", output=review
    )
    final: Any = RULES["director"](
        material_of(inputs.model_copy(update={"prior": (first, proposal, said)}))
    )
    kept = [name for cut in final["cuts"] for name in cut["sentence_ids"]]
    assert kept == [name for name in ids if name not in review["drop_sentence_ids"]]


def test_a_director_alone_in_the_room_makes_the_proposal_himself() -> None:
    first = PriorOutput(
        order=1, label="a", type="VideoAnalyze", output=BASE.model_dump(mode="json")
    )
    final: Any = RULES["director"](material_of(AgentInputs(prior=(first,), parameters=PARAMETERS)))
    assert len(final["cuts"]) >= 4


def test_every_shipped_agent_has_a_rule_and_every_rule_an_agent() -> None:
    types = {agent.agent_type for agent in DEFINITIONS.agents.values()}
    assert types == {*RULES, *TOOL_RULES}


def test_a_brief_is_read_by_headings_labels_bullets_and_tables() -> None:
    brief = brief_of(DOCUMENTS)
    brand = brand_of(DOCUMENTS)
    assert brief.value(AUDIENCE, 100) == "Young makers who like to remix films."
    assert brief.value(GOAL, 100).startswith("They download the film.")
    assert brief.seconds() == 22.0
    assert brand.items(USE) == ["free", "share", "power"]
    assert brand.items(AVOID) == ["studio", "permission"]
    labelled = brief_of(
        (ProjectDocument(name="notes.md", text="Title: One two\n**Avoid:** a b\n"),)
    )
    assert labelled.value(TITLE, 100) == "One two"
    assert labelled.items(AVOID) == ["a b"]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.text(min_size=1, max_size=60).filter(lambda text: text.split() != []),
            st.sampled_from([0.1, 0.5, 2.0]),
        ),
        min_size=1,
        max_size=8,
    ),
    st.text(max_size=300),
    st.text(max_size=300),
    st.text(max_size=80),
)
def test_whatever_is_said_and_written_every_answer_fits_its_schema(
    said: list[tuple[str, float]], brief: str, brand: str, request: str
) -> None:
    documents = (
        ProjectDocument(name="brief.md", text=brief),
        ProjectDocument(name="brand.md", text=brand),
    )
    answers(talk(lines=said), documents, request)


def _unsure(number: int) -> VideoAnalysis:
    source = BASE.sources[0]
    transcript = source.transcript
    assert transcript is not None
    sentences = list(transcript.sentences)
    words = tuple(
        word.model_copy(update={"probability": 0.2}) for word in sentences[number - 1].words
    )
    sentences[number - 1] = sentences[number - 1].model_copy(update={"words": words})
    changed = transcript.model_copy(update={"sentences": tuple(sentences)})
    return BASE.model_copy(update={"sources": (source.model_copy(update={"transcript": changed}),)})
