"""The differential oracle as a state machine: after every rule a cached run equals an uncached one.

The rules edit what runs (scene_rules.py), the project's files, the user's code and the programs;
they let time pass, damage, remove and pin what the cache keeps, start a new process, and break a
store at one of its calls. After each, `World.check` plans, runs with the cache and without it, and
compares all that the two leave behind; the ledger says where hits were due and where none may be.

One sequence in three has the embedded stores on disk, the others their twins in memory.

Source: specification R1, C18, P12.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule, run_state_machine_as_test

from reprise.model.agent import ToolGroup
from reprise.model.cache import EntryFilter, EntrySummary
from reprise.model.settings import ContextBudgetSettings, DigestStrategy, StepCacheSettings
from tests.oracle.compare import Finding, RunOutcome
from tests.oracle.ledger import Ledger
from tests.oracle.scene_rules import EVERYTHING, NOTHING, SceneRules, agents_of, places
from tests.oracle.scenes import AGENTS, LABELS, PROVIDERS, Scene, first_scenes
from tests.oracle.stores import Stores, in_memory, on_disk
from tests.oracle.user_code import VERSIONS, module_texts
from tests.oracle.world import World
from tests.watched import Fault, Faults

STEPS_PER_SEQUENCE = 7
APART = 10
HANG_SECONDS = 0.05

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where files cost nothing, if there is such a place."""

FILES = ("brief.md", "notes.md", "one.mp4", "two.mp4")
BYTES = {
    "md": (b"a brief", b"b brief", b"longer brief"),
    "mp4": (b"\0\0\0 ftypisom one", b"\0\0\0 ftypisom two"),
}

SEQUENCES = settings(
    stateful_step_count=STEPS_PER_SEQUENCE,
    deadline=None,
    database=None,
    print_blob=False,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
"""How every run of the machine goes; nothing is kept."""

SEARCH = settings(SEQUENCES, phases=[Phase.generate])
"""For what only has to be found, not to be made small."""


@dataclass
class Tally:
    """What was checked."""

    sequences: int = 0
    on_disk: int = 0
    runs: int = 0
    steps: int = 0
    hits: int = 0
    faults: int = 0

    def add(self, other: "Tally") -> None:
        """Add another's figures."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


files = st.sampled_from(FILES)
versions = st.integers(0, 2)
faults = st.sampled_from([fault for fault in Fault if fault is not Fault.SLOW])
"""What is late does its work after the run, beside the next one: tests/oracle/test_faults.py."""

budgets = st.sampled_from(
    [
        ContextBudgetSettings(),
        ContextBudgetSettings(max_input_chars=40, recent_steps_verbatim=0),
        ContextBudgetSettings(
            max_input_chars=120, recent_steps_verbatim=0, digest_max_string_chars=3
        ),
        ContextBudgetSettings(
            max_input_chars=200, recent_steps_verbatim=1, digest_max_array_items=1
        ),
        ContextBudgetSettings(
            max_input_chars=120, digest_max_depth=1, digest_strategy=DigestStrategy.SAMPLED
        ),
        ContextBudgetSettings(max_input_chars=40, recent_steps_verbatim=0, enabled=False),
    ]
)
"""What of the prior outputs goes into a prompt; the outputs are short, and so are these."""


class CacheOracle(SceneRules):
    """A world under edits; `tally` adds up over all machines of a process."""

    tally = Tally()

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory(dir=MEMORY)
        self.ledger = Ledger()
        self._found: list[Finding] = []

    @initialize(scene=first_scenes, stores=st.sampled_from([in_memory, in_memory, on_disk]))
    def begin(self, scene: Scene, stores: Callable[[Path], Stores]) -> None:
        self.scene = scene
        self.world = World(scene, Path(self._folder.name), stores)

    @invariant()
    def a_cached_run_equals_an_uncached_one(self) -> None:
        self.world.scene = self.scene
        judge = partial(self._judge, touched=self.touched)
        found, self._found = self._found + self.world.check(judge), []
        assert not found, "\n".join(map(str, found))

    def _judge(
        self, outcome: RunOutcome, *, touched: int = NOTHING, faulty: bool = False
    ) -> list[Finding]:
        """Return what the ledger denies of a run with the cache, and count the run."""
        records = outcome.records
        CacheOracle.tally.steps += len(records)
        CacheOracle.tally.hits += sum(record.from_cache for record in records.values())
        return self.ledger.observe(
            self.scene, records, self.world.clock.latest, touched=touched, faulty=faulty
        )

    def teardown(self) -> None:
        world = getattr(self, "world", None)
        if world is not None:
            CacheOracle.tally.add(Tally(1, int(world.is_on_disk), world.runs))
        self._folder.cleanup()

    def leave(self, *, touched: int = NOTHING) -> None:
        """Take the scene as it is: the rule changed something around it."""
        self.take(self.scene, touched)

    # --------------------------------------------------------------------------------- files

    @rule(name=files, version=versions)
    def put_file(self, name: str, version: int) -> None:
        """Add a file, replace it (perhaps with one of the same size), or touch it."""
        self.world.add_file(self.scene.project, name, content_of(name, version))
        self.leave(touched=EVERYTHING)

    @rule(name=files)
    def remove_file(self, name: str) -> None:
        self.world.remove_file(self.scene.project, name)
        self.leave(touched=EVERYTHING)

    @rule(name=st.sampled_from(FILES[:2]), version=versions, agent=st.sampled_from(AGENTS))
    def replace_a_file_while_an_agent_works(self, name: str, version: int, agent: str) -> None:
        """What was asked while a file that it reads moved serves that run alone (case C9)."""
        world = self.world
        world.scene = self.scene
        moved: list[bool] = []

        def before_call(asked: str) -> None:
            if asked == agent and not moved:
                before = world.projects.files(self.scene.project)
                world.add_file(self.scene.project, name, content_of(name, version))
                moved.append(world.projects.files(self.scene.project) != before)

        world.before_calls(before_call)
        services = world.services()
        outcome = world.run(services, world.request(services))
        world.before_calls(lambda _agent: None)
        self._found = self._judge(outcome, touched=EVERYTHING)
        if any(moved) and ToolGroup.PROJECT_READ in self.scene.agents[agent].tool_groups:
            self._found += self.ledger.not_stored(self.scene, outcome.records, agent)
        self.leave(touched=EVERYTHING)

    @rule(kind=st.sampled_from(["artifacts", "bodies"]), every=st.integers(1, 3), by=versions)
    def damage_objects(self, kind: str, every: int, by: int) -> None:
        """Delete artifacts or bodies, or write over artifacts."""
        objects = self.world.objects
        infos = [info for info in objects.scan("projects/") if info.key.split("/")[2] == kind]
        for info in infos[::every]:
            self.ledger.damage_object(info.key)
            if by == 0 or kind == "bodies":
                objects.delete(info.key)
            else:
                objects.put_bytes(info.key, b"x" * (info.size_bytes + by - 1))
        # The request of the run before is a body, and the next run's when it names none.
        self.leave(touched=NOTHING if kind == "artifacts" else EVERYTHING)

    # ------------------------------------------------------------------------ time, code, tools

    @rule(hours=st.sampled_from([0.1, 1.0, 100.0, 200.0, 1000.0, -1.0, -300.0]))
    def move_clock(self, hours: float) -> None:
        self.world.clock.now += timedelta(hours=hours)
        self.leave()

    @rule()
    def restart_the_process(self) -> None:
        self.world.restart()
        self.leave()

    @rule(version=st.integers(0, len(VERSIONS) - 1))
    def edit_code(self, version: int) -> None:
        """Edit the user's own modules: a body, a default, a constant, a table, a comment."""
        self.world.functions.texts = module_texts(version)
        self.leave(touched=EVERYTHING)

    @rule(program=st.sampled_from(["analyzer", "speech", "renderer"]), version=st.integers(1, 2))
    def install(self, program: str, version: int) -> None:
        setattr(getattr(self.world, program), "version", str(version))  # noqa: B010 - Any of three.
        self.leave(touched=EVERYTHING)

    @rule(provider=st.sampled_from(PROVIDERS), model=st.sampled_from(["rule-1", "rule-2"]))
    def update_a_model(self, provider: str, model: str) -> None:
        """Let a provider answer with another model under its own name."""
        self.world.providers[provider].model = model
        self.leave(touched=EVERYTHING)

    @rule(provider=st.sampled_from(PROVIDERS), tokens=st.sampled_from([None, 8_000, 16_000]))
    def change_a_models_context(self, provider: str, tokens: int | None) -> None:
        self.world.providers[provider].context_tokens = tokens
        self.leave(touched=EVERYTHING)

    @rule(budget=budgets)
    def edit_the_context_budget(self, budget: ContextBudgetSettings) -> None:
        self.take(replace(self.scene, budget=budget))

    @rule(choice=places)
    def let_an_agent_fail(self, choice: int) -> None:
        used = [name for step in self.scene.workflow.steps for name in agents_of(step)] or AGENTS
        self.world.fail_agents({used[choice % len(used)]})
        self.leave()

    # ------------------------------------------------------------------------------- the cache

    @rule(
        update=st.sampled_from(
            [
                {},
                {"ttl_hours": 0.5},
                {"ttl_hours": 2000.0},
                {"max_entry_chars": 400},
                {"max_entry_chars": 1200},
                {"enabled": False},
            ]
        )
    )
    def edit_cache_settings(self, update: Mapping[str, object]) -> None:
        knobs = StepCacheSettings.model_validate(update)
        self.take(replace(self.scene, settings=knobs), NOTHING)

    def _entries(self) -> list[EntrySummary]:
        found = self.world.entries.find(EntryFilter())
        return sorted(found, key=lambda entry: (entry.created_at, entry.cache_key))

    @rule(choice=st.integers(0, 9))
    def damage_an_entry(self, choice: int) -> None:
        """Change its payload by hand."""
        entries, now = self._entries(), self.world.clock.now
        for summary in entries[choice : choice + 1]:
            entry = self.world.entries.get(summary.project_id, summary.cache_key, now=now)
            if entry is not None:
                payload = entry.payload.replace("a", "b")
                self.world.entries.put(entry.model_copy(update={"payload": payload}))
                self.ledger.damage_entry(summary)
        self.leave()

    @rule(label=st.sampled_from(LABELS[:4]))
    def invalidate(self, label: str) -> None:
        """Remove a step's entries."""
        for entry in self._entries():
            if entry.step_label == label:
                self.ledger.remove(entry)
        self.world.entries.invalidate(EntryFilter(step_label=label), now=self.world.clock.now)
        self.leave()

    @rule(choice=st.integers(0, 9), on=st.booleans())
    def pin(self, choice: int, on: bool) -> None:
        for entry in self._entries()[choice : choice + 1]:
            self.world.entries.pin(entry.project_id, entry.cache_key, on=on)
            self.ledger.pin(entry, on=on)
        self.leave()

    @rule()
    def sweep(self) -> None:
        """Remove what expired and what is over the caps."""
        self.world.entries.sweep(now=self.world.clock.now)
        self._found = self.ledger.sweep(self._entries())
        self.leave()

    @rule(fault=faults, call=st.integers(0, 5), once=st.booleans())
    def run_with_the_entries_at_fault(self, fault: Fault, call: int, once: bool) -> None:
        self._run_at_fault("entries", fault, call, once)

    @rule(fault=faults, call=st.integers(0, 3), once=st.booleans())
    def run_with_the_objects_at_fault(self, fault: Fault, call: int, once: bool) -> None:
        self._run_at_fault("objects", fault, call, once)

    def _run_at_fault(self, store: str, fault: Fault, call: int, once: bool) -> None:
        """Its outputs are those of a run without a cache; so are those of the next, sound run."""
        self.world.scene = self.scene
        now = self.world.clock.now
        others = [
            self.world.entries.get(entry.project_id, entry.cache_key, now=now)
            for entry in self._entries()[:1]
        ]
        at_fault = Faults(
            fault,
            lambda number, _name: number == call if once else number >= call,
            next(iter(others), None),
        )
        services = self.world.services_at_fault(store, at_fault, HANG_SECONDS)
        self._found = self.world.check_run(services, partial(self._judge, faulty=True))
        at_fault.healed.set()
        CacheOracle.tally.faults += at_fault.fired
        self.leave()


def content_of(name: str, version: int) -> bytes:
    """Return a version of a file's bytes."""
    choices = BYTES[name.rpartition(".")[2]]
    return choices[version % len(choices)]


def run_sequences(
    machine: type[SceneRules], first_seed: int, count: int, chosen: settings = SEQUENCES
) -> None:
    """Run so many sequences of a machine, the same ones for the same seed.

    Hypothesis makes variants of an example once it has seen ten, by copying parts of it to other
    places: the same edit twice. A seed of its own for each ten keeps the sequences apart.

    Raises:
        AssertionError: Something is wrong; its notes are the sequence that shows it.
    """
    for place in range(0, count, APART):
        part = settings(chosen, max_examples=min(APART, count - place))
        run_state_machine_as_test(seed(first_seed + place)(machine), settings=part)
