"""The execution's sandbox as one step uses it: what its key says of it, its files, its snapshots.

It is opened when the step executes, never for a look-up or a plan.

Source: specification E10, C2, C23.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import JsonValue

from reprise.canonical import NotCanonical
from reprise.errors import RepriseError
from reprise.model.agent import EFFECT_GROUPS, ToolGroup
from reprise.model.sandbox import SandboxExecution, SandboxMoment, SandboxTree, changed_paths
from reprise.model.workflow import Step
from reprise.ports import Sandboxes, SandboxFiles

logger = logging.getLogger(__name__)

SHOWN_DIGITS = 16
"""So much of a digest is shown."""

SHOWN_PATHS_MAX = 20
"""So many changed files are named."""


class StepSandbox:
    """The sandbox of a step with agents that have sandbox tools.

    Args:
        sandboxes: All sandboxes.
        execution: Whose it is.
        step: The step.
        groups: The tool groups of its agents.
    """

    def __init__(
        self,
        sandboxes: Sandboxes,
        execution: SandboxExecution,
        step: Step,
        groups: frozenset[ToolGroup],
    ) -> None:
        self._sandboxes = sandboxes
        self._execution = execution
        self._step = step
        self._groups = groups
        self._seen: SandboxTree | None = None
        self._files: SandboxFiles | None = None
        self._before: SandboxTree | None = None

    @property
    def files(self) -> SandboxFiles:
        """The files, while the step executes."""
        if self._files is None:
            message = "the sandbox is there only while its step executes"
            raise RuntimeError(message)
        return self._files

    @property
    def template(self) -> str | None:
        """Name of the template that the workflow names; None when it names none."""
        return self._execution.template

    def seen(self) -> SandboxTree:
        """Return the files that the step's agents find, as they were at the first call.

        Who authors or renders finds them too: in what a tool answers.

        Raises:
            NotCanonical: They cannot be read; there is no key then.
        """
        if self._seen is None:
            try:
                self._seen = self._sandboxes.tree(self._execution)
            except RepriseError as error:
                message = f"the sandbox cannot be read: {error}"
                raise NotCanonical(message) from error
        return self._seen

    def as_of_now(self) -> "StepSandbox":
        """Return it with the files as they are now, without what the step itself did to them."""
        now = StepSandbox(self._sandboxes, self._execution, self._step, self._groups)
        if self._groups & EFFECT_GROUPS:
            now._seen = self._before
        return now

    @contextmanager
    def opened(self) -> Iterator[dict[str, JsonValue]]:
        """Have the files while the step executes, with a snapshot before and one after.

        Yields:
            Figures for the UI, filled at the end.

        Raises:
            RepriseError: The sandbox cannot be made, or a snapshot cannot be kept. What the step
                itself raised goes before that.
        """
        figures: dict[str, JsonValue] = {}
        self._files = self._sandboxes.open(self._execution)
        self._before = self._snapshot(SandboxMoment.BEFORE)
        try:
            yield figures
        except BaseException:
            self._keep_what_is_left()
            raise
        else:
            after = self._snapshot(SandboxMoment.AFTER)
            figures.update(_figures(self._before, after))
        finally:
            self._files = None

    def _snapshot(self, moment: SandboxMoment) -> SandboxTree:
        return self._sandboxes.snapshot(self._execution, self._step, moment)

    def _keep_what_is_left(self) -> None:
        try:
            self._snapshot(SandboxMoment.AFTER)
        except RepriseError as error:
            # The step's own error is what counts.
            logger.warning("step %d: its sandbox is not kept: %s", self._step.order, error)


def _figures(before: SandboxTree, after: SandboxTree) -> dict[str, JsonValue]:
    changed = changed_paths(before, after)
    shown = ", ".join(changed[:SHOWN_PATHS_MAX]) or "none"
    more = len(changed) - SHOWN_PATHS_MAX
    return {
        "sandbox_before": before.digest[:SHOWN_DIGITS],
        "sandbox_after": after.digest[:SHOWN_DIGITS],
        "sandbox_files_changed": f"{shown} and {more} more" if more > 0 else shown,
    }
