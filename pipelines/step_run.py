"""One execution of a step: what is asked for, and what came of it.

Source: specification C9, C19.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from reprise.model.budget import BudgetReport
from reprise.model.cache import Lookup
from reprise.model.result import SeenStep, StepResult
from reprise.model.sandbox import EarlierRun
from reprise.model.workflow import Step, Workflow
from reprise.ports import Cancelled, Progress


class RunCacheMode(StrEnum):
    """What a run does with the cache (specification C19)."""

    USE = "use"
    """Look up and store."""
    REFRESH = "refresh"
    """Execute and overwrite; the expiry is reset."""
    BYPASS = "bypass"
    """Neither read nor write."""
    READONLY = "readonly"
    """Look up, and write nothing."""


def _unheard(_what: str, _share: float | None) -> None:
    """Take progress that nobody watches."""


@dataclass(frozen=True)
class StepRun:
    """One execution of a step that is asked for."""

    workflow: Workflow
    step: Step
    project_id: str
    run_id: str
    history: Mapping[int, SeenStep]
    """Order → what the step's ancestors gave; 0 is the request."""
    cache_mode: RunCacheMode = RunCacheMode.USE
    provider_id: str | None = None
    """Provider of the run; None takes the configured one."""
    earlier: tuple[EarlierRun, ...] = ()
    """Runs that this one goes on from, the nearest first; its sandbox begins with theirs."""
    progress: Progress = _unheard
    cancelled: Cancelled = lambda: False

    @property
    def where(self) -> str:
        """The step as messages name it."""
        return f"step {self.step.order} ({self.step.label}) of {self.workflow.id}"


@dataclass(frozen=True)
class StepOutcome:
    """A step's result and what the cache had to do with it."""

    result: StepResult
    cache_key: str | None
    prompt_chars: int
    """Characters of its input, as an agent is shown it."""
    budgeted: BudgetReport | None
    """What the context budget did to its input."""
    seconds: float
    started_at: datetime
    finished_at: datetime
    lookup: Lookup
    """What the cache said."""
