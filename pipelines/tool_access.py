"""The tools of an agent in a step, bound to what the step sees.

They read the project as the step's key knows it: content-addressed bytes of the rows that were
seen, and an index whose answers are held against the state that is in the key.

Source: specification A2, C2, C23.
"""

import tempfile
from pathlib import Path

from pipelines.services import StepContext
from reprise.agents.loop import AgentAnswer, AgentTask, run_agent
from reprise.errors import StoreError
from reprise.model.agent import SANDBOX_GROUPS, ToolGroup
from reprise.model.result import Artifact
from reprise.model.sandbox import CompositionRequest, RenderedComposition
from reprise.model.search import IndexedFile, SearchAnswer
from reprise.tools.access import ProjectDoor, SandboxDoor, ToolAccess
from reprise.tools.toolbox import Toolbox

MOVED = "the search index changed while the agent read it"


def ask_agent(context: StepContext, task: AgentTask) -> tuple[AgentAnswer, "StepTools"]:
    """Return an agent's answer to its task in a step, and what its tools did.

    Raises:
        RepriseError: See `run_agent`.
    """
    tools = StepTools(context, task)
    answer = run_agent(
        task,
        context.provider_of(task.agent),
        cancelled=context.cancelled,
        clock=context.services.loop_clock,
        tools=tools.toolbox,
    )
    return answer, tools


class StepTools:
    """The tools of one agent in a step, and what they did."""

    def __init__(self, context: StepContext, task: AgentTask) -> None:
        self._context = context
        self._moved = False
        reaches = {ToolGroup.PROJECT_READ, ToolGroup.PROJECT_WRITE} & task.agent.tool_groups
        door = self._door() if reaches else None
        self._access = ToolAccess(task.inputs, door, self._sandbox(task))
        withheld = context.services.withheld_tools
        self.toolbox = Toolbox(task.agent.tool_groups, self._access, withheld)

    @property
    def written(self) -> tuple[str, ...]:
        """Names of the files that the agent wrote, each once."""
        return tuple(dict.fromkeys(self._access.written))

    @property
    def rendered(self) -> tuple[Artifact, ...]:
        """The films that the agent rendered, the last one of each name."""
        door = self._access.sandbox
        films = door.rendered if door is not None else []
        return tuple({film.name: film for film in films}.values())

    @property
    def lossy(self) -> str | None:
        """Why the answer may serve this run alone; None when it may be kept."""
        return MOVED if self._moved else None

    def _door(self) -> ProjectDoor:
        files, project_id = self._context.services.project_files, self._context.project_id
        return ProjectDoor(
            text=files.document_text,
            search=self._search,
            indexed=self._indexed,
            rows=self._context.searched.rows,
            write=lambda name, text: files.write_document(project_id, name, text),
            searches_rows=self._context.searched.elsewhere is None,
        )

    def _sandbox(self, task: AgentTask) -> SandboxDoor | None:
        sandbox = self._context.sandbox
        if sandbox is None or not SANDBOX_GROUPS & task.agent.tool_groups:
            return None
        renders = self._context.services.compositions is not None and sandbox.template is not None
        return SandboxDoor(sandbox.files, self._render if renders else None)

    def _render(self, request: CompositionRequest) -> tuple[Artifact, RenderedComposition]:
        """Render a copy of the files as they are now, and keep the film."""
        context = self._context
        sandbox, renderer = context.sandbox, context.services.compositions
        assert sandbox is not None
        assert sandbox.template is not None
        assert renderer is not None
        context.workdir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=context.workdir, prefix="composition-") as name:
            folder = Path(name)
            (folder / "tree").mkdir()
            sandbox.files.copy_to(folder / "tree")
            film = renderer(sandbox.template).render(
                folder / "tree",
                request,
                folder / "film",
                progress=context.progress,
                cancelled=context.cancelled,
            )
            path = folder / "film" / film.file_name
            return context.keep_file(path, film.file_name, "video/mp4"), film

    def _search(self, query: str, limit: int) -> SearchAnswer:
        self._require_index()
        context = self._context
        answer = context.services.search.search(context.project_id, query, limit=limit)
        self._moved |= answer.revision != context.searched.revision
        return answer

    def _indexed(self, name: str) -> IndexedFile | None:
        self._require_index()
        context = self._context
        found = context.services.index.file(context.project_id, name)
        digest = None if found is None else found.digest
        self._moved |= digest != context.searched.digests.get(name)
        return found

    def _require_index(self) -> None:
        services, fault = self._context.services, self._context.searched.fault
        # Whoever else answers says for themselves why not, and whether to try again: a refused
        # user is refused for good.
        if fault is not None and services.search is services.index:
            raise StoreError(fault)
