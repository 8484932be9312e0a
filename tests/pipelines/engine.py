"""A whole engine in a temporary folder, with agents that answer by a fixed rule, for tests.

The stores, the compiler, the executor and Dagster are the real ones.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg
import yaml
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run_iterator

from pipelines.definitions import Wiring, build_definitions
from pipelines.ingest import Ingest
from pipelines.partitions import sync_partitions
from reprise.errors import ProviderError
from reprise.model.conversation import ModelReply, ModelRequest, ProviderIdentity
from reprise.model.result import StepRecord, Usage
from reprise.model.settings import StepCacheSettings
from reprise.ports import Cancelled, ModelProvider
from resources.scripted_provider import ScriptedProvider
from resources.settings import InferenceApiSettings, SandboxEditToolsSettings, Settings


@dataclass
class RuleProvider:
    """Answers each agent with a digest of what it was shown, and counts the calls."""

    calls: Counter[str] = field(default_factory=Counter)
    fails: set[str] = field(default_factory=set)
    constant: set[str] = field(default_factory=set)
    """Agents that answer the same whatever they are shown."""

    @property
    def context_tokens(self) -> int | None:
        return None

    def identity(self) -> ProviderIdentity:
        return ProviderIdentity(id="rule", kind="scripted", model="rule-1")

    def complete(self, request: ModelRequest, *, cancelled: Cancelled) -> ModelReply:
        name = request.agent.id
        self.calls[name] += 1
        if name in self.fails:
            message = f"{name} is out of order"
            raise ProviderError(message)
        shown = json.dumps(
            [request.system_prompt, [message.content for message in request.messages]]
        )
        digest = hashlib.sha256(shown.encode()).hexdigest()[:12]
        text = "same" if name in self.constant else f"{name}:{digest}"
        usage = Usage(input_uncached=100, output=20, calls=1, cost_micros=500)
        return ModelReply(text=text, finish_reason="stop", usage=usage, model="rule-1")


class Engine:
    """A home, a folder of workflows, a Dagster instance and a provider."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workflows = root / "workflows"
        (self.workflows / "prompts").mkdir(parents=True)
        self.instance = dg.DagsterInstance.ephemeral()
        self.rule = RuleProvider()
        self.scripted: ScriptedProvider | None = None
        """Answers in place of the rule, where there is one."""
        self.before: Callable[[ModelProvider], ModelProvider] = lambda provider: provider
        """Puts something before whoever answers."""
        self.failures: list[str] = []
        self.inference_api = InferenceApiSettings()
        self.sandbox_edit_tools = SandboxEditToolsSettings()
        # Two loaded cores must not turn a hit into a miss.
        self.step_cache = StepCacheSettings(
            lookup_deadline_seconds=60, store_deadline_seconds=60, head_deadline_seconds=60
        )
        self.store: object | None = None
        self.wiring = self.fresh()

    def fresh(self) -> Wiring:
        """Return a new wiring, as a new process would have it; it becomes the current one."""
        settings = Settings(
            home=self.root / "home",
            workflows_dir=self.workflows,
            provider="rule",
            step_cache=self.step_cache,
            inference_api=self.inference_api,
            sandbox_edit_tools=self.sandbox_edit_tools,
        )
        wiring = Wiring(settings, store=self.store)
        wiring.use_provider("rule", self.before(self.scripted or self.rule))
        self.wiring = wiring
        return wiring

    def agent(self, name: str, prompt: str, **front: object) -> None:
        """Write an agent file."""
        head = yaml.safe_dump({"agent_type": name, **front})
        (self.workflows / "prompts" / f"{name}.md").write_text(f"---\n{head}---\n{prompt}\n")

    def workflow(self, steps: Sequence[Mapping[str, object]], **fields: object) -> None:
        """Write the workflow `w`; its steps are numbered from 1."""
        numbered = [{"order": place, **step} for place, step in enumerate(steps, start=1)]
        text = yaml.safe_dump({"id": "w", **fields, "steps": numbered})
        (self.workflows / "w.yaml").write_text(text)

    def agents_workflow(self, reads: Mapping[str, Sequence[int]], **fields: object) -> None:
        """Write the workflow `w` of agents; each reads the steps of the orders given."""
        steps = []
        for name, orders in reads.items():
            if not (self.workflows / "prompts" / f"{name}.md").exists():
                self.agent(name, f"You are {name}.")
            steps.append(
                {
                    "label": name,
                    "type": "Agent",
                    "agent": name,
                    "input_mode": "selected_prior_steps",
                    "selected_prior_step_orders": list(orders),
                }
            )
        self.workflow(steps, **fields)

    def project(self, name: str, **files: str) -> None:
        """Add a project with text files."""
        folder = self.root / "material" / name
        folder.mkdir(parents=True, exist_ok=True)
        for stem, text in {"brief": "a brief", **files}.items():
            (folder / f"{stem}.md").write_text(text)
        self.ingest.add(name, [folder], lambda _name, _change: None)
        sync_partitions(self.instance, self.wiring.projects)

    @property
    def ingest(self) -> Ingest:
        """Files into projects."""
        wiring = self.wiring
        return wiring.ingest

    def job(self) -> dg.JobDefinition:
        """Return the workflow's job, compiled from the files as they are now."""
        return self.job_named("w")

    def job_named(self, name: str) -> dg.JobDefinition:
        """Return a job of the definitions as the files give them now."""
        return build_definitions(self.fresh()).resolve_job_def(name)

    def run(
        self,
        project: str = "p",
        *,
        tags: Mapping[str, str] | None = None,
        config: Mapping[str, object] | None = None,
        job: dg.JobDefinition | None = None,
    ) -> dg.DagsterRun:
        """Run the workflow as a new process would, and return the recorded run."""
        job = job or self.job()
        run = self.instance.create_run_for_job(
            job,
            tags={"dagster/partition": project, **(tags or {})},
            run_config={
                "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
                "ops": {"w__request": {"config": dict(config or {})}},
            },
        )
        return self.execute(job, run)

    def execute(self, job: dg.JobDefinition, run: dg.DagsterRun) -> dg.DagsterRun:
        """Execute a run that was created."""
        for event in execute_run_iterator(InMemoryJob(job), run, self.instance):
            if event.is_step_failure:
                self.failures.append(event.step_failure_data.error_display_string)
        done = self.instance.get_run_by_id(run.run_id)
        assert done is not None
        return done

    def records(self, run: dg.DagsterRun) -> dict[str, StepRecord]:
        """Return what a run kept of its steps, by label."""
        return {r.label: r for r in self.wiring.history.of_run(run.run_id) if r.order > 0}

    def executed(self) -> set[str]:
        """Return the agents that were asked since the last time, and forget them."""
        names = set(self.rule.calls)
        self.rule.calls.clear()
        return names

    def histogram(self, run: dg.DagsterRun) -> Counter[str]:
        """Return how many events of each type a run has."""
        entries = self.instance.all_logs(run.run_id)
        return Counter(
            entry.dagster_event.event_type_value
            for entry in entries
            if entry.dagster_event is not None
        )
