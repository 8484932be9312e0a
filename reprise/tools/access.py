"""What the tools of one agent may reach in one step, and what they did there.

Tools see the project as it was when the step began, and what the agent itself wrote since. Without
a door to the project they have what is among the agent's inputs.

Source: specification A2, C2, C23.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from reprise.context.document_text import why_unread
from reprise.errors import BadInput
from reprise.model.conversation import AgentInputs, PriorOutput
from reprise.model.project import MediaKind, ProjectFile
from reprise.model.result import Artifact
from reprise.model.sandbox import CompositionRequest, RenderedComposition
from reprise.model.search import IndexedFile, IndexRow, SearchAnswer
from reprise.ports import SandboxFiles


@dataclass(frozen=True)
class ProjectDoor:
    """A project as tools reach it; what is wrong with a store is raised."""

    text: Callable[[ProjectFile], str]
    """Returns a document's text; raises BadInput for one that cannot be read."""
    search: Callable[[str, int], SearchAnswer]
    """Returns what a query finds, at most so many hits."""
    indexed: Callable[[str], IndexedFile | None]
    """Returns what the index knows of a file."""
    rows: Sequence[IndexRow]
    """What the index knows of each file, by name."""
    write: Callable[[str, str], ProjectFile]
    """Creates or replaces a document of this name and text; raises BadInput when it may not."""
    searches_rows: bool = True
    """False when searches are answered from elsewhere, of which `rows` tell nothing."""


@dataclass(frozen=True)
class Replacement:
    """What a change of a file replaced, so that it can be put back."""

    path: str
    """The file, as `SandboxFiles.resolved` names it."""
    before: bytes | None
    """What was there; None where there was no file."""
    digest: str
    """SHA-256 of what is there since, in hex."""


@dataclass
class SandboxDoor:
    """A sandbox as the tools of one agent reach it, and what they did there in this step."""

    files: SandboxFiles
    """The files."""
    render: Callable[[CompositionRequest], tuple[Artifact, RenderedComposition]] | None = None
    """Renders a composition of the files as they are now and keeps the film; raises as
    `CompositionRenderer.render` does. None where nothing can be rendered."""
    tools: frozenset[str] = frozenset()
    """Names of the tools that the agent has, as its toolbox says: advice names no others."""
    seen: dict[str, str] = field(default_factory=dict)
    """Path, as `SandboxFiles.resolved` names it, and as the agent wrote it → hash of the bytes that
    the agent last read or wrote. The latter counts where a link leads elsewhere since."""
    replaced: list[Replacement] = field(default_factory=list)
    """What the agent's changes replaced, the last one last; the oldest are forgotten."""
    failed: dict[str, int] = field(default_factory=dict)
    """Call → how often it failed since it last went through."""
    rendered: list[Artifact] = field(default_factory=list)
    """Films that were kept."""

    @property
    def can_read(self) -> bool:
        """Whether the agent has a tool that reads files."""
        return "ReadSandboxFile" in self.tools

    def saw(self, path: str, named: str | None) -> None:
        """Remember what the agent knows of a file: its hash, None for nothing."""
        for each in (self.files.resolved(path), path):
            self.seen.pop(each, None)
            if named is not None:
                self.seen[each] = named

    def known(self, path: str) -> str:
        """Return the hash of what the agent knows of a file; empty when it knows nothing."""
        return self.seen.get(self.files.resolved(path)) or self.seen.get(path, "")


@dataclass
class ToolAccess:
    """What the tools of one agent may reach."""

    inputs: AgentInputs = field(default_factory=AgentInputs)
    """Files, documents and prior outputs as values."""
    project: ProjectDoor | None = None
    """The project's texts and index."""
    sandbox: SandboxDoor | None = None
    """The execution's sandbox."""
    written: list[str] = field(default_factory=list)
    """Names of the files that the agent wrote."""

    def files(self) -> Sequence[ProjectFile]:
        """Return the project's files, by name."""
        return sorted(self.inputs.files, key=lambda file: file.name)

    def file(self, name: str) -> ProjectFile | None:
        """Return a file."""
        return next((file for file in self.inputs.files if file.name == name), None)

    def document_names(self) -> list[str]:
        """Return the names of the documents that can be read."""
        if self.project is None:
            return [document.name for document in self.inputs.documents]
        return [
            file.name
            for file in self.files()
            if file.media_kind is MediaKind.DOCUMENT and why_unread(file) is None
        ]

    def text(self, name: str) -> str | None:
        """Return a document's text; None when there is no document of this name.

        Raises:
            BadInput: It cannot be read.
        """
        if self.project is None:
            named = (each.text for each in self.inputs.documents if each.name == name)
            return next(named, None)
        file = self.file(name)
        if file is None or file.media_kind is not MediaKind.DOCUMENT:
            return None
        return self.project.text(file)

    def indexed(self, name: str) -> IndexedFile | None:
        """Return what the index knows of a file."""
        return self.project.indexed(name) if self.project is not None else None

    def write(self, name: str, text: str) -> ProjectFile:
        """Create or replace a document; tools that read see it from now on.

        Raises:
            BadInput: It may not be written.
        """
        if self.project is None:
            message = "the project cannot be written here; put the text into your answer"
            raise BadInput(message)
        file = self.project.write(name, text)
        self.written.append(name)
        others = [each for each in self.inputs.files if each.name != name]
        self.inputs = self.inputs.model_copy(update={"files": (*others, file)})
        return file

    def prior(self) -> Sequence[PriorOutput]:
        """Return the prior steps' outputs, by order; what was said in a room is none."""
        return [item for item in self.inputs.prior if item.order > 0]
