"""The rules that work on a sandbox, through the real loop and the real tools, on the template."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from reprise.agents.heuristics.author import copied
from reprise.agents.heuristics.motion_plan import PLAN_PATH
from reprise.agents.loop import AgentTask
from reprise.errors import BadInput
from reprise.model.conversation import (
    AgentInputs,
    ModelReply,
    ModelRequest,
    PriorOutput,
    ProjectDocument,
    ProviderIdentity,
)
from reprise.model.feature_blocks import FEATURES
from reprise.model.media import VideoAnalysis
from reprise.model.result import Artifact
from reprise.model.sandbox import CompositionRequest, RenderedComposition
from reprise.ports import Cancelled
from reprise.tools.access import SandboxDoor, ToolAccess
from reprise.tools.catalog import withheld_tools
from reprise.tools.toolbox import Toolbox
from resources.definition_files import load_definitions
from resources.heuristic_provider import HeuristicProvider
from resources.memory_sandbox import MemorySandbox
from tests.agent_loop import run_agent
from tests.analyses import TALK, silent_film, talk

WORKFLOWS = Path(__file__).parents[3] / "workflows"
TEMPLATE = WORKFLOWS / "templates" / "motion-titles"
AGENTS = (
    "content",
    "brand",
    "hook",
    "motion-graphics-planner",
    "motion-graphics-director",
    "remotion-component-translator",
    "author",
)
BRIEF = ProjectDocument(name="brief.md", text="# Take it apart\n\nAudience: young makers\n")
BRAND = ProjectDocument(
    name="brand.md",
    text="Tagline: Free to share.\n\n| use | avoid |\n|---|---|\n| free | studio |\n\n"
    "## Look\n\n| what | value |\n|---|---|\n| Meadow green | `#6FA83A` |\n"
    "| Night, for cards | `#101820` |\n| Paper, for text | `#FFFFF0` |\n",
)
MISSING = "Node.js was not found; install it and run `npm ci` in the template"


@dataclass
class Recorded:
    """The heuristic provider, with the tools that it called written down."""

    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    context_tokens: int | None = None

    def identity(self) -> ProviderIdentity:
        return HeuristicProvider().identity()

    def complete(self, request: ModelRequest, *, cancelled: Cancelled) -> ModelReply:
        reply = HeuristicProvider().complete(request, cancelled=cancelled)
        self.calls += [(call.name, json.loads(call.arguments)) for call in reply.tool_calls]
        return reply


def template() -> dict[str, bytes]:
    return {
        str(path.relative_to(TEMPLATE)): path.read_bytes()
        for path in TEMPLATE.rglob("*.ts*")
        if "node_modules" not in path.parts
    }


def film(request: CompositionRequest) -> tuple[Artifact, RenderedComposition]:
    """Stand for a renderer: every composition becomes a film."""
    name = f"{request.composition_id}.mp4"
    made = RenderedComposition(
        file_name=name,
        width=1280,
        height=720,
        frame_count=75,
        duration_seconds=3.0,
        versions={"remotion": "4"},
    )
    artifact = Artifact(
        name=name, storage_key=f"films/{name}", size_bytes=1, media_type="video/mp4", etag=None
    )
    return artifact, made


def nothing_installed(_request: CompositionRequest) -> tuple[Artifact, RenderedComposition]:
    raise BadInput(MISSING)


class Team:
    """The agents of the workflow, one after the other, over one sandbox."""

    def __init__(
        self,
        files: Mapping[str, bytes] | None = None,
        *,
        features: Sequence[str] = tuple(FEATURES),
        render: Callable[
            [CompositionRequest], tuple[Artifact, RenderedComposition]
        ] = nothing_installed,
    ) -> None:
        self.sandbox = MemorySandbox(template() if files is None else files)
        self.answers: dict[str, Any] = {}
        self.providers: dict[str, Recorded] = {}
        self._definitions = load_definitions(WORKFLOWS, frozenset(features))
        self._withheld = withheld_tools(features)
        self._render = render
        self._prior: list[PriorOutput] = []

    def work(
        self,
        analysis: VideoAnalysis | None = None,
        *,
        documents: tuple[ProjectDocument, ...] = (BRIEF, BRAND),
        request: str = "",
        until: str = "author",
        before: Callable[[str], None] = lambda _name: None,
    ) -> "Team":
        first = (analysis or talk()).model_dump(mode="json")
        self._prior = [PriorOutput(order=1, label="a", type="VideoAnalyze", output=first)]
        for name in AGENTS[: AGENTS.index(until) + 1]:
            before(name)
            self.ask(name, documents, request)
        return self

    def ask(
        self, name: str, documents: tuple[ProjectDocument, ...] = (), request: str = ""
    ) -> JsonValue:
        agent = self._definitions.agent(name)
        inputs = AgentInputs(user_request=request, prior=tuple(self._prior), documents=documents)
        door = SandboxDoor(self.sandbox, self._render)
        self.providers[name] = Recorded()
        answer = run_agent(
            AgentTask(agent=agent, inputs=inputs),
            self.providers[name],
            cancelled=lambda: False,
            tools=Toolbox(
                agent.tool_groups, ToolAccess(inputs, sandbox=door), withheld=self._withheld
            ),
        )
        self.answers[name] = answer.output
        self._prior.append(
            PriorOutput(
                order=len(self._prior) + 1,
                label=name,
                type="Agent",
                agent_type=agent.agent_type,
                output=answer.output,
            )
        )
        return answer.output

    def text(self, path: str) -> str:
        return self.sandbox.read(path).decode()

    def tools(self, name: str) -> list[str]:
        return [tool for tool, _ in self.providers[name].calls]

    @property
    def plan(self) -> Any:
        return json.loads(self.text(PLAN_PATH))


def with_line(number: int, text: str) -> VideoAnalysis:
    lines = [(text if at == number else said, pause) for at, (said, pause) in enumerate(TALK, 1)]
    return talk(lines=lines)


def test_the_plan_says_the_brands_title_and_quotes_the_strongest_sentences() -> None:
    team = Team().work(until="motion-graphics-planner")
    answer = team.answers["motion-graphics-planner"]
    assert answer["plan_path"] == PLAN_PATH
    assert answer["problems"] == []
    assert [card["composition_id"] for card in answer["cards"]] == [
        "TitleCard",
        "LowerThird",
        "LowerThird2",
    ]
    title, *quotes = answer["cards"]
    assert (title["title"], title["subtitle"]) == ("Take it apart", "Free to share.")
    said = {text for text, _ in TALK}
    assert all(quote["title"] in said for quote in quotes)
    assert all("studio" not in quote["title"] for quote in quotes)
    assert quotes[0]["start_seconds"] < quotes[1]["start_seconds"]
    assert team.plan == {"cards": answer["cards"], "colours": answer["colours"]}
    assert answer["colours"] == {"background": "#101820", "text": "#fffff0", "accent": "#6fa83a"}


def test_the_director_gives_each_card_the_time_that_it_takes_to_read() -> None:
    team = Team().work(until="motion-graphics-planner")
    planned = team.plan["cards"]
    answer: Any = team.ask("motion-graphics-director")
    assert answer["verdict"] == "changed"
    changed = {change["composition_id"] for change in answer["changes"]}
    for before, after in zip(planned, team.plan["cards"], strict=True):
        words = len(f"{after['title']} {after['subtitle']}".split())
        assert after["seconds"] >= round(1 + words / 3, 1)
        assert (before != after) == (after["composition_id"] in changed)


def test_texts_lengths_and_colours_of_the_plan_come_into_the_templates_data() -> None:
    team = Team()
    before = team.text("src/cards.ts")
    team.work(until="remotion-component-translator")
    after = team.text("src/cards.ts")
    for card in team.plan["cards"]:
        entry = (
            f"  {card['composition_id']}: {{\n"
            f"    title: {json.dumps(card['title'])},\n"
            f"    subtitle: {json.dumps(card['subtitle'])},\n"
            f"    seconds: {card['seconds']:g},\n"
            "  },\n"
        )
        assert entry in after
    assert 'background: "#101820"' in after
    # What is outside the entries and the colours is untouched.
    head = before.index("export const cards")
    assert after[:head] == before[:head]


def test_files_are_changed_by_targeted_edits_of_text_that_was_read_first() -> None:
    team = Team().work()
    for name in ("motion-graphics-director", "remotion-component-translator", "author"):
        tools = team.tools(name)
        edits = [tool for tool in tools if tool in {"EditSandboxFile", "ApplySandboxFileEdits"}]
        assert edits, name
        assert "WriteSandboxFile" not in tools
        assert tools.index("ReadSandboxFileLines") < tools.index(edits[0])
    assert "GetSandboxFileOutline" in team.tools("author")
    assert team.tools("motion-graphics-planner").count("WriteSandboxFile") == 1


def test_a_composition_that_the_plan_adds_is_made_like_its_model() -> None:
    team = Team()
    before = team.text("src/Root.tsx")
    team.work()
    after = team.text("src/Root.tsx")
    start = before.index('    <Composition\n      id="LowerThird"')
    element = before[start : before.index("/>", start) + 2]
    copy = element.replace('"LowerThird"', '"LowerThird2"')
    assert after == before.replace(element, f"{element}\n{copy}")
    assert "component={LowerThird}" in copy
    assert team.answers["author"]["changed_files"] == ["src/Root.tsx"]


def test_without_a_renderer_the_answer_says_what_was_not_rendered_and_why() -> None:
    team = Team().work()
    films = team.answers["author"]["compositions"]
    assert [film["composition_id"] for film in films] == ["TitleCard", "LowerThird", "LowerThird2"]
    assert all(not film["rendered"] and film["storage_key"] is None for film in films)
    assert all(MISSING in film["note"] for film in films)
    review = team.answers["motion-graphics-director"]
    assert review["preview_key"] is None
    assert MISSING in review["problems"][0]


def test_with_a_renderer_every_planned_composition_is_a_film() -> None:
    team = Team(render=film).work()
    films = team.answers["author"]["compositions"]
    assert [each["storage_key"] for each in films] == [
        "films/TitleCard.mp4",
        "films/LowerThird.mp4",
        "films/LowerThird2.mp4",
    ]
    assert team.answers["author"]["problems"] == []
    assert team.answers["motion-graphics-director"]["preview_key"] == "films/TitleCard.mp4"


@pytest.mark.parametrize(
    "changed",
    [
        lambda: Team().work(with_line(7, "Why may everybody share the film for free?")),
        lambda: Team().work(documents=(ProjectDocument(name="brief.md", text="# Rabbit\n"), BRAND)),
        lambda: Team().work(documents=(BRIEF,)),
        lambda: Team().work(request="A title and one lower third about permission"),
    ],
    ids=["transcript", "brief", "brand notes", "request"],
)
def test_each_thing_moves_what_the_four_answer_and_what_the_sandbox_holds(
    changed: Callable[[], Team],
) -> None:
    before, after = Team().work(), changed()
    assert before.text("src/cards.ts") != after.text("src/cards.ts")
    assert before.plan != after.plan
    for name in ("motion-graphics-planner", "remotion-component-translator"):
        assert before.answers[name] != after.answers[name]


def test_the_number_of_lower_thirds_that_the_request_names_counts() -> None:
    def ids(request: str) -> list[str]:
        team = Team().work(request=request, until="motion-graphics-planner")
        return [card["composition_id"] for card in team.answers["motion-graphics-planner"]["cards"]]

    assert ids("Title, no lower thirds please") == ["TitleCard"]
    assert ids("One short key point") == ["TitleCard", "LowerThird"]
    assert ids("3 lower thirds")[1:] == ["LowerThird", "LowerThird2", "LowerThird3"]


def test_equal_inputs_give_equal_answers_and_files() -> None:
    first, second = Team().work(), Team().work()
    assert first.answers == second.answers
    assert first.sandbox.list() == second.sandbox.list()


def test_what_is_done_already_is_not_done_again() -> None:
    team = Team().work()
    files = team.sandbox.list()
    for name in ("motion-graphics-director", "remotion-component-translator", "author"):
        team.ask(name)
    assert team.answers["motion-graphics-director"]["verdict"] == "approved"
    assert team.answers["remotion-component-translator"]["changes"] == []
    assert team.answers["author"]["changed_files"] == []
    assert team.sandbox.list() == files


def test_footage_without_speech_gets_a_title_card_alone() -> None:
    team = Team().work(silent_film())
    answer = team.answers["motion-graphics-planner"]
    assert [card["kind"] for card in answer["cards"]] == ["title"]
    assert answer["problems"][0].startswith("0 of 2 lower thirds")


def test_a_text_with_quotes_and_backslashes_becomes_one_typescript_string() -> None:
    brief = ProjectDocument(name="brief.md", text='# The \\"best\\" `${film}` \\\\ ever\n')
    team = Team().work(documents=(brief,), until="remotion-component-translator")
    title = team.plan["cards"][0]["title"]
    assert f"title: {json.dumps(title)}," in team.text("src/cards.ts")


def test_an_empty_sandbox_is_told_and_nothing_is_made_up() -> None:
    team = Team({}).work()
    answer = team.answers["motion-graphics-planner"]
    assert (answer["cards"], answer["plan_path"]) == ([], None)
    assert "no Remotion root file" in answer["problems"][0]
    assert team.answers["author"]["compositions"] == []
    assert team.answers["author"]["problems"] != []
    assert not team.sandbox.list()


def test_a_template_without_lower_thirds_gets_none() -> None:
    files = template()
    root = files["src/Root.tsx"].replace(b'id="LowerThird"', b'id="Outro"')
    team = Team({**files, "src/Root.tsx": root}).work(until="motion-graphics-planner")
    answer = team.answers["motion-graphics-planner"]
    assert [card["kind"] for card in answer["cards"]] == ["title"]
    assert "no composition for a lower third" in answer["problems"][0]


def test_a_file_that_changes_between_reading_and_editing_is_read_again() -> None:
    """Another hand writes to the file right after the first read; the edit is then `stale`."""
    team = Team().work(until="motion-graphics-director")
    meddled: list[int] = []

    class Meddled(MemorySandbox):
        def read(self, path: str, **bounds: Any) -> bytes:
            data = super().read(path, **bounds)
            if path == "src/cards.ts" and len(meddled) < 2:
                meddled.append(1)
                self.update(path, lambda old: (old or b"") + b"// another hand\n")
            return data

    team.sandbox = Meddled(
        {file.path: team.sandbox.read(file.path) for file in team.sandbox.list()}
    )
    answer: Any = team.ask("remotion-component-translator")
    assert answer["problems"] == []
    assert answer["changes"]
    assert "// another hand" in team.text("src/cards.ts")


def test_an_edit_that_is_refused_twice_is_told_in_the_tools_words() -> None:
    files = template()
    twice = files["src/cards.ts"] + b'const other = {background: "#14202b"};\n'
    team = Team({**files, "src/cards.ts": twice}).work(until="remotion-component-translator")
    answer = team.answers["remotion-component-translator"]
    assert answer["changes"] == []
    assert answer["problems"][0].startswith("ApplySandboxFileEdits src/cards.ts: ambiguous: ")
    assert team.tools("remotion-component-translator").count("ApplySandboxFileEdits") == 2
    assert team.text("src/cards.ts") == twice.decode()


def test_with_the_edit_tools_off_the_same_files_come_out() -> None:
    on, off = Team().work(), Team(features=()).work()
    assert off.sandbox.list() == on.sandbox.list()
    assert off.answers == on.answers
    used = {tool for name in AGENTS for tool in off.tools(name)}
    assert used == {
        "ListSandboxFiles",
        "ReadSandboxFile",
        "RenderComposition",
        "WriteSandboxFile",
    }


def test_a_file_that_is_written_whole_keeps_its_end() -> None:
    files = template()
    long = files["src/cards.ts"] + b"".join(b"// note %05d\n" % at for at in range(3000))
    team = Team({**files, "src/cards.ts": long}, features=())
    team.work(until="remotion-component-translator")
    assert "Take it apart" in team.text("src/cards.ts")
    assert team.text("src/cards.ts").endswith("// note 02999\n")
    longer = files["src/cards.ts"] + b"// note\n" * 20_000
    team = Team({**files, "src/cards.ts": longer}, features=())
    team.work(until="remotion-component-translator")
    assert team.text("src/cards.ts") == longer.decode()
    problems = team.answers["remotion-component-translator"]["problems"]
    assert problems[0].startswith("src/cards.ts is too long to be read whole")


def test_a_copied_element_keeps_its_component_and_takes_the_new_id() -> None:
    element = '<Composition id="Card" component={Card} x={cards.Card} y={at("Card")} z="Cards" />'
    assert copied(element, "Card", "Card2") == (
        '<Composition id="Card2" component={Card} x={cards.Card2} y={at("Card2")} z="Cards" />'
    )
