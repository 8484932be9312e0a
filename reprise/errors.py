"""Every error that Reprise raises on purpose.

The tree:

    RepriseError
    ├── BadInput                 what a user gave cannot be used (exit code 2)
    │   ├── DefinitionInvalid    a workflow or agent file; carries its problems
    │   ├── UnknownName          no such workflow, project, step, file or run
    │   ├── SandboxRefused       a path or file of a sandbox; carries its code
    │   └── SettingsInvalid      a setting or environment variable
    ├── StepFailed               a step cannot give its result
    │   ├── AnswerInvalid        a model's answer does not fit its schema, or was cut
    │   ├── MessageInvalid       a message of a conversation that no model can be sent
    │   ├── LimitReached         a loop ran into its bound (turns, tokens, seconds, money)
    │   └── InputUnresolved      a variable or expression that a step names has no value
    ├── MediaError               a media file or tool
    │   ├── MediaUnreadable      the file is broken, truncated, or not what it claims
    │   └── ToolFailed           ffmpeg or another program failed, or ran past its limit
    ├── SpeechModelMissing       no speech model can be found
    ├── ProviderError            a model endpoint refused, failed or did not answer
    ├── InferenceApiError        the Inference API refused, failed or did not answer
    │   └── NotAuthorized        it knows no such user, or no such project of theirs
    ├── StoreError               a database or object store
    │   ├── ObjectMissing        no object under this key
    │   ├── StoreTimeout         no answer within the deadline
    │   └── StoreUnusable        stays so until a person acts: not ours, read-only, full, too new
    └── Cancelled                the run was stopped by its user

`transient` tells a retry policy whether the same call may go through later.
"""


class RepriseError(Exception):
    """Base of all errors that Reprise raises on purpose."""

    transient: bool = False
    usage: object = None
    """What model calls took before the error (a `Usage`, whose class lies above this module)."""
    ended: str | None = None
    """Why an agent's loop ended (a `LoopEnd`), where it failed in one."""


class BadInput(RepriseError):
    """What a user gave cannot be used."""


class DefinitionInvalid(BadInput):
    """A definition file is invalid.

    Args:
        problems: One line each: file, line, step, what is wrong, what to do.
    """

    def __init__(self, problems: "tuple[str, ...] | list[str]") -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class UnknownName(BadInput):
    """No such workflow, project, step, file or run."""


class SandboxRefused(BadInput):
    """A path or file of a sandbox cannot be used; nothing was changed.

    Args:
        message: What is wrong and what to do, for the model that asked.
        code: A `SandboxFault`, whose class lies above this module.
    """

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code


class SettingsInvalid(BadInput):
    """A setting or environment variable cannot be used."""


class StepFailed(RepriseError):
    """A step cannot give its result."""


class AnswerInvalid(StepFailed):
    """A model's answer does not fit its schema, or was cut short."""


class MessageInvalid(StepFailed):
    """A message of a conversation cannot be sent to a model."""


class LimitReached(StepFailed):
    """A loop ran into its bound."""


class InputUnresolved(StepFailed):
    """A variable or expression that a step names has no value."""


class MediaError(RepriseError):
    """A media file or a media tool."""


class MediaUnreadable(MediaError):
    """The file is broken, truncated, or not what it claims to be."""


class ToolFailed(MediaError):
    """A program failed or ran past its limit."""


class SpeechModelMissing(RepriseError):
    """No speech model can be found."""


class ProviderError(RepriseError):
    """A model endpoint refused, failed or did not answer.

    Args:
        message: What happened, where, what to do.
        transient: True when the same call may go through later.
        retry_after_seconds: The endpoint's own word, if it gave one.
    """

    def __init__(
        self, message: str, *, transient: bool = False, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(message)
        self.transient = transient
        self.retry_after_seconds = retry_after_seconds


class InferenceApiError(RepriseError):
    """The Inference API refused, failed or did not answer.

    Args:
        message: What happened, where, what to do.
        transient: True when the same call may go through later.
        status: The HTTP status, if it answered.
    """

    def __init__(self, message: str, *, transient: bool = False, status: int | None = None) -> None:
        super().__init__(message)
        self.transient = transient
        self.status = status


class NotAuthorized(InferenceApiError):
    """The Inference API knows no such user, or no such project of theirs: 401, 403, 404."""


class StoreError(RepriseError):
    """A database or object store did not do what was asked."""

    transient = True


class ObjectMissing(StoreError):
    """There is no object under this key."""

    transient = False


class StoreTimeout(StoreError):
    """A store gave no answer within the deadline."""


class StoreUnusable(StoreError):
    """A store stays unusable until a person acts: not ours, read-only, full, or newer."""

    transient = False


class Cancelled(RepriseError):
    """The run was stopped by its user."""
