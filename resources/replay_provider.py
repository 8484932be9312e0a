"""Model calls recorded into a file, and answered from it again without a network.

`RecordingProvider` asks another provider and appends what it was asked and what it answered;
`ReplayProvider` answers from such a file and says what differs when a request is not in it. The
file is lines of JSON (`reprise.agents.recordings`), appended call by call in one write, so that a
process that dies leaves at most a torn last line, which readers drop. Keys are no part of a
request and are never in it; prompts and answers are.

Source: specification A4. Tests: tests/integration/test_replay_provider.py.
"""

import contextlib
import fcntl
import os
import stat
import threading
from collections import Counter, defaultdict
from pathlib import Path

from reprise.agents.recordings import Asked, asked, differences, lines_of, read_recording
from reprise.canonical import sha256_hex
from reprise.errors import BadInput, ProviderError
from reprise.errors import Cancelled as RunCancelled
from reprise.model.conversation import ModelReply, ModelRequest, ProviderIdentity
from reprise.ports import Cancelled, ModelProvider


class ReplayProvider:
    """Answers from a recording; nobody is asked.

    A request that was made more than once gets its answers in their order, then the last one again.

    Args:
        provider_id: Its id in the settings.
        path: The recording.
        context_tokens: The context that the recorded model had, where it was small.

    Raises:
        BadInput: The recording cannot be read.
    """

    def __init__(self, provider_id: str, path: Path, *, context_tokens: int | None = None) -> None:
        self._id = provider_id
        self._path = path
        self._context_tokens = context_tokens
        try:
            data = path.read_bytes()
        except OSError as error:
            message = f"provider {provider_id!r}: the recording cannot be read: {error}"
            raise BadInput(message) from error
        self._revision = sha256_hex(data)[:16]
        self._recording = read_recording(data, str(path))
        self._replies: dict[str, list[ModelReply]] = defaultdict(list)
        for call in self._recording.calls:
            self._replies[call.request].append(call.reply)
        self._given: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def context_tokens(self) -> int | None:
        """The model's context in tokens; None when it is no bound."""
        return self._context_tokens

    def identity(self) -> ProviderIdentity:
        """Return what of it belongs into a cache key: another recording may answer otherwise."""
        return ProviderIdentity(
            id=self._id, kind="replay", revision=self._revision, reads_values=False
        )

    def complete(self, request: ModelRequest, *, cancelled: Cancelled) -> ModelReply:
        """Answer as recorded.

        The tokens are those of the recorded call, so that the loop's bounds act as they did; the
        money is nothing.

        Raises:
            ProviderError: The request is not in the recording; says what differs.
            Cancelled: The run is being stopped.
        """
        if cancelled():
            message = f"provider {self._id!r}: the run was stopped before the call"
            raise RunCancelled(message)
        wanted = asked(request)
        replies = self._replies.get(wanted.digest)
        if replies is None:
            raise self._not_recorded(wanted)
        with self._lock:
            at = self._given[wanted.digest]
            self._given[wanted.digest] += 1
        reply = replies[min(at, len(replies) - 1)]
        free = reply.usage.model_copy(update={"cost_micros": 0})
        changes = {"usage": free, "model": f"{reply.model} (replayed)", "waited_seconds": 0.0}
        return reply.model_copy(update=changes)

    def _not_recorded(self, wanted: Asked) -> ProviderError:
        told = "; ".join(differences(wanted, self._recording))
        message = (
            f"provider {self._id!r}: this request is not in the recording {str(self._path)!r}: "
            f"{told}. Record it anew, or undo what changed"
        )
        return ProviderError(message)


class RecordingProvider:
    """Asks another provider and records what it answers; errors are not recorded.

    Args:
        provider_id: Its id in the settings.
        inner: Who answers.
        path: The recording; made at the first call when there is none, else appended to.
    """

    def __init__(self, provider_id: str, inner: ModelProvider, path: Path) -> None:
        self.inner = inner
        self._id = provider_id
        self._path = path
        self._lock = threading.Lock()
        self._known: set[str] | None = None
        """Digests of the parts that the file has; None before the first call."""

    @property
    def context_tokens(self) -> int | None:
        """The model's context in tokens; None when it is no bound."""
        return self.inner.context_tokens

    def identity(self) -> ProviderIdentity:
        """Return what of it belongs into a cache key: the answers are the other provider's."""
        return self.inner.identity().model_copy(update={"id": self._id})

    def complete(self, request: ModelRequest, *, cancelled: Cancelled) -> ModelReply:
        """Answer one request.

        Raises:
            ProviderError: As the provider behind it.
            BadInput: The file holds something else, or cannot be written.
            Cancelled: The run is being stopped.
        """
        with self._lock:
            # Before anyone is asked: what cannot be recorded is not to be paid for.
            known = self._known = self._prepared() if self._known is None else self._known
        reply = self.inner.complete(request, cancelled=cancelled)
        call = asked(request)
        try:
            with self._lock:
                self._append(lines_of(call, reply, known))
                known.update(call.values)
        except OSError as error:
            message = f"provider {self._id!r}: the answer cannot be recorded: {error}"
            failure = BadInput(message)
            failure.usage = reply.usage
            raise failure from error
        return reply

    def _prepared(self) -> set[str]:
        """Make the file ready to be appended to; return the digests of its parts."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # Prompts may be confidential, whoever made the file.
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            descriptor = os.open(self._path, flags, 0o600)
        except OSError as error:
            message = f"provider {self._id!r}: the recording cannot be written: {error}"
            raise BadInput(message) from error
        with os.fdopen(descriptor, "rb+", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            data = file.read()
            known = set(read_recording(data, str(self._path)).parts)
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                # A file of somebody else stays as they want it.
                with contextlib.suppress(PermissionError):
                    os.fchmod(file.fileno(), 0o600)
            # What a process that died left of a line would be glued to the next one.
            file.truncate(data.rfind(b"\n") + 1)
        return known

    def _append(self, lines: bytes) -> None:
        with self._path.open("ab", buffering=0) as file:
            # Another process may record into the same file.
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(lines)
            os.fsync(file.fileno())
