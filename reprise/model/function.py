"""What a Function step's callable gets and gives: import these in your own module.

    from reprise.model.function import FunctionInputs, FunctionResult

    def pick(inputs: FunctionInputs) -> FunctionResult:
        cuts = inputs.output("edit")["cuts"]
        return FunctionResult({"first": cuts[0]}, variables={"cut_count": len(cuts)})

A callable may also return a plain JSON value, which is then the step's output.

Source: specification W3, C9, C20.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue


@dataclass(frozen=True)
class FunctionFile:
    """A project file as a function sees it."""

    name: str
    """Path inside the project, with forward slashes."""
    kind: str
    """`video`, `audio`, `image`, `document` or `other`."""
    media_type: str
    """Internet media type."""
    size_bytes: int
    """Size of its bytes."""
    content_digest: str
    """SHA-256 of its bytes, hexadecimal."""


@dataclass(frozen=True)
class FunctionInputs:
    """Everything that a function gets; all that can change its answer is in the cache key."""

    outputs: Mapping[int, JsonValue]
    """Raw outputs of the steps that it reads, by order."""
    labels: Mapping[str, int]
    """Label → order of the steps that it reads."""
    resolved_input: str
    """The same as the text that an agent would be shown."""
    mapped: Mapping[str, JsonValue]
    """Values by name in mode `custom_mapped_subset`; else empty."""
    user_request: str
    """The free-text request."""
    variables: Mapping[str, JsonValue]
    """The workflow's variables, and those that the steps it reads have set."""
    files: tuple[FunctionFile, ...]
    """Project files that `function.files` names, by name."""
    workdir: Path
    """A folder of its own for files that it makes; removed when the step ends."""
    progress: Callable[[str, float | None], None] = field(repr=False)
    """Tells what is being done, and the share done (0 to 1, or None when unknown)."""
    cancelled: Callable[[], bool] = field(repr=False)
    """Answers whether the run is being stopped; ask it in long work and return early."""
    open_file: Callable[[str], Path] = field(repr=False)
    """Gives a local path of a project file; see `local_path`."""
    read_file: Callable[[str], bytes] = field(repr=False)
    """Gives a project file's bytes; see `read_bytes`."""

    def output(self, step: int | str) -> JsonValue:
        """Return the raw output of a step that it reads, by order or label.

        Raises:
            KeyError: It reads no such step.
        """
        order = self.labels.get(step) if isinstance(step, str) else step
        if order is None or order not in self.outputs:
            read = ", ".join(f"{number} ({label})" for label, number in self.labels.items())
            message = f"this step reads no step {step!r}; it reads: {read or 'none'}"
            raise KeyError(message)
        return self.outputs[order]

    def file(self, name: str) -> FunctionFile:
        """Return a project file's facts.

        Raises:
            KeyError: The step sees no such file.
        """
        for item in self.files:
            if item.name == name:
                return item
        seen = ", ".join(item.name for item in self.files) or "none"
        message = f"this step sees no project file {name!r}; it sees: {seen}"
        raise KeyError(message)

    def local_path(self, name: str) -> Path:
        """Return a local path of a project file, for reading only.

        Raises:
            KeyError: The step sees no such file.
            ObjectMissing: Its bytes are gone.
        """
        return self.open_file(self.file(name).name)

    def read_bytes(self, name: str) -> bytes:
        """Return a project file's bytes; the same errors as `local_path`."""
        return self.read_file(self.file(name).name)

    def read_text(self, name: str) -> str:
        """Return a project file's text, UTF-8; the same errors as `local_path`."""
        return self.read_bytes(name).decode("utf-8-sig")


@dataclass(frozen=True)
class FunctionResult:
    """What a function gives, when its output is not all."""

    output: object = None
    """The step's output: a JSON value."""
    prompt_output: object = None
    """What the prompts of later agents show in its place: a JSON value; None shows the output. All
    that reads outputs as values gets `output` all the same."""
    variables: Mapping[str, object] = field(default_factory=dict)
    """Variables for later steps; `function.sets` must declare the names."""
    stop_workflow: bool = False
    """True skips every later step; the run succeeds. `function.stops` must declare it."""
    sets_output_variable: bool = True
    """False leaves the step's output variable unset."""
    artifacts: Mapping[str, Path] = field(default_factory=dict)
    """File name for people → file that it made, to be kept in the object store."""
    notes: tuple[str, ...] = ()
    """What a person should know."""
