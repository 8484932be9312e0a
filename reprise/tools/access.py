"""What the tools of one agent may reach in one step.

A door is None where the agent's groups do not lead; its tools are neither offered nor run then.
Tools see the project as it was when the step began, and what the agent itself wrote since.

Source: specification A2, C2, C23.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from reprise.model.conversation import AgentInputs, ProjectDocument
from reprise.model.project import ProjectFile
from reprise.model.search import IndexedFile, IndexRow, SearchAnswer


@dataclass(frozen=True)
class ProjectDoor:
    """A project, for reading."""

    text: Callable[[ProjectFile], str]
    """Returns a document's text, perhaps cut."""
    search: Callable[[str, int], SearchAnswer]
    """Returns what a query finds, at most so many hits."""
    indexed: Callable[[str], IndexedFile | None]
    """Returns what the index knows of a file."""
    rows: Callable[[], Sequence[IndexRow]]
    """Returns what the index knows of each file."""


@dataclass
class ToolAccess:
    """What the tools of one agent may reach, and what they did."""

    inputs: AgentInputs = field(default_factory=AgentInputs)
    """Files, documents and prior outputs as values."""
    project: ProjectDoor | None = None
    """The project's texts and index; None leaves the documents among the inputs."""

    def files(self) -> Sequence[ProjectFile]:
        """Return the project's files, by name."""
        return sorted(self.inputs.files, key=lambda file: file.name)

    def document_names(self) -> list[str]:
        """Return the names of the documents that can be read."""
        return [document.name for document in self.inputs.documents]

    def document(self, name: str) -> ProjectDocument | None:
        """Return a document."""
        return next((each for each in self.inputs.documents if each.name == name), None)
