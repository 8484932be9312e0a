"""Function: a user's Python callable gives the step's result.

It is called with one argument, `FunctionInputs`, and returns a JSON value or a `FunctionResult`.
What JSON cannot hold fails the step; what JSON holds in another shape is passed on in that shape
and not stored, with a note.

Source: specification W3, C2, C9, C12, C20.
"""

import logging
import mimetypes
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import JsonValue

from pipelines.services import StepContext
from reprise.cache.key import KeyFacts
from reprise.canonical import NotCanonical, canonical_json, sha256_hex
from reprise.context.plain_json import plain_json
from reprise.context.step_input import mapped_values
from reprise.errors import BadInput, RepriseError, StepFailed
from reprise.model.function import FunctionFile, FunctionInputs, FunctionResult
from reprise.model.project import ProjectFile
from reprise.model.result import Artifact, StepResult
from reprise.model.workflow import FunctionConfig
from reprise.ports import LoadedFunction

logger = logging.getLogger(__name__)

ERROR_CHARS_MAX = 500
"""Longest message of an error in the user's code."""


class FunctionExecutor:
    """Calls the function that the step names."""

    def key_facts(self, context: StepContext) -> KeyFacts:
        """Return the code's fingerprint, the outputs it reads as values, and the files it may read.

        Raises:
            NotCanonical: The source of the function cannot be had.
            BadInput: It cannot be loaded.
        """
        config = _config(context)
        return KeyFacts(
            function_fingerprint=_load(context, config).fingerprint(),
            history=tuple(
                (str(order), item.label, sha256_hex(canonical_json(item.output)))
                for order, item in sorted(context.prior.items())
            ),
            files=_file_facts(context, config),
        )

    def execute(self, context: StepContext) -> StepResult:
        """Call the function.

        Raises:
            BadInput: It cannot be loaded.
            StepFailed: It raised, or what it gave cannot be used; names file and line.
        """
        config = _config(context)
        function = _load(context, config)
        context.progress(f"calling {config.callable}", None)
        value = _call(context, config, function)
        result = value if isinstance(value, FunctionResult) else FunctionResult(output=value)
        return _step_result(context, config, result)


def _config(context: StepContext) -> FunctionConfig:
    config = context.step.function
    if config is None:
        message = f"{context.where} has no `function:`; name a callable there"
        raise BadInput(message)
    return config


def _load(context: StepContext, config: FunctionConfig) -> LoadedFunction:
    return context.services.functions.load(config.callable)


def _files(context: StepContext, config: FunctionConfig) -> list[ProjectFile]:
    return [
        file
        for file in context.files
        if any(fnmatchcase(file.name, pattern) for pattern in config.files)
    ]


def _file_facts(context: StepContext, config: FunctionConfig) -> tuple[tuple[str, ...], ...]:
    """Return what the function may see of the project: all of it, unless its config says less.

    It is shown no status and no time, so that a file that is being indexed is the same file to it.
    """
    return tuple(
        (file.id, file.name, file.content_digest, file.media_kind.value, file.media_type)
        for file in _files(context, config)
    )


def _call(context: StepContext, config: FunctionConfig, function: LoadedFunction) -> object:
    inputs = _inputs(context, config)
    try:
        return function.call(inputs)
    except RepriseError:
        raise
    except (Exception, SystemExit) as error:
        # The user's code may raise anything; the step fails with the place, the log has the rest.
        logger.exception("%s: %s failed", context.where, config.callable)
        what = " ".join(f"{type(error).__name__}: {error}".split())[:ERROR_CHARS_MAX]
        message = f"{config.callable} failed at {function.place_of(error)}: {what}"
        raise StepFailed(message) from error


def _inputs(context: StepContext, config: FunctionConfig) -> FunctionInputs:
    files = {file.name: file for file in _files(context, config)}

    def open_file(name: str) -> Path:
        file = files[name]
        return context.local_file(
            file.storage_key, f"{file.content_digest[:32]}{Path(name).suffix}"
        )

    workdir = context.workdir / "made"
    workdir.mkdir(parents=True, exist_ok=True)
    return FunctionInputs(
        outputs={order: item.output for order, item in context.prior.items()},
        labels={item.label: order for order, item in context.prior.items()},
        resolved_input=context.resolved_input,
        mapped=mapped_values(context.step, context.prior, where=context.where),
        user_request=context.user_request,
        variables=dict(context.variables),
        files=tuple(_facts(file) for file in files.values()),
        workdir=workdir,
        progress=context.progress,
        cancelled=context.cancelled,
        open_file=open_file,
        read_file=lambda name: open_file(name).read_bytes(),
    )


def _facts(file: ProjectFile) -> FunctionFile:
    return FunctionFile(
        name=file.name,
        kind=file.media_kind.value,
        media_type=file.media_type,
        size_bytes=file.size_bytes,
        content_digest=file.content_digest,
    )


def _step_result(
    context: StepContext, config: FunctionConfig, result: FunctionResult
) -> StepResult:
    output, lossy = _json(config, "output", result.output)
    shown, change = _json(config, "prompt_output", result.prompt_output)
    lossy = lossy or change
    variables: dict[str, JsonValue] = {}
    for name, value in result.variables.items():
        if name not in config.sets:
            declared = ", ".join(config.sets) or "none"
            message = (
                f"{config.callable} set the variable {name!r}, which the step does not declare"
                f" (declared: {declared}); add it to `function.sets`"
            )
            raise StepFailed(message)
        variables[name], change = _json(config, f"variable {name!r}", value)
        lossy = lossy or change
    if result.stop_workflow and not config.stops:
        message = (
            f"{config.callable} stopped the workflow, which the step does not declare;"
            " add `stops: true` to `function`, so that later steps wait for it"
        )
        raise StepFailed(message)
    notes = [*map(str, result.notes)]
    if lossy is not None:
        notes.append(f"not stored for later runs: {lossy}")
    return StepResult(
        output=output,
        prompt_output=shown,
        variables=variables,
        stop_workflow=bool(result.stop_workflow),
        sets_output_variable=bool(result.sets_output_variable),
        artifacts=_artifacts(context, config, result),
        notes=tuple(notes),
        lossy=lossy,
    )


def _json(config: FunctionConfig, what: str, value: object) -> tuple[JsonValue, str | None]:
    try:
        plain, change = plain_json(value)
    except NotCanonical as error:
        message = (
            f"{config.callable} gave no JSON value: in its {what}, {error};"
            " return text, numbers, lists and dicts"
        )
        raise StepFailed(message) from error
    return plain, None if change is None else f"in the {what} of {config.callable}, {change}"


def _artifacts(
    context: StepContext, config: FunctionConfig, result: FunctionResult
) -> tuple[Artifact, ...]:
    artifacts = []
    for name, path in result.artifacts.items():
        if not Path(path).is_file():
            message = f"{config.callable} gave the artifact {name!r}, and {path} is no file"
            raise StepFailed(message)
        media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
        artifacts.append(context.keep_file(Path(path), name, media_type))
    return tuple(artifacts)
