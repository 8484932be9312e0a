"""Random sequences of edits, and what is wrong after each; a failing one is cut down.

A sequence is a list of `(edit, seed)` pairs on a first scene made from a seed, so it is printed,
repeated and shortened as plain data.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from reprise.model.result import CacheReason
from reprise.ports import EntryStore
from tests.oracle.compare import Finding
from tests.oracle.deterministic import TwinAnalyzer, TwinRenderer, TwinSpeech
from tests.oracle.scene_edits import SCENE_EDITS
from tests.oracle.scenes import first_scene
from tests.oracle.user_code import any_version
from tests.oracle.world import World

EDITS_MAX = 8

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where files cost nothing, if there is such a place."""

FILES = ("brief.md", "notes.md", "one.mp4", "two.mp4")
BYTES = {
    "md": (b"a brief", b"b brief", b"longer brief"),
    "mp4": (b"\0\0\0 ftypisom one", b"\0\0\0 ftypisom two"),
}

WorldEdit = Callable[[World, Random], None]


def put_file(world: World, rng: Random) -> None:
    """Add a file, replace it (perhaps with one of the same size), or touch it."""
    name = rng.choice(FILES)
    world.add_file(world.scene.project, name, rng.choice(BYTES[name.rpartition(".")[2]]))


def remove_file(world: World, rng: Random) -> None:
    """Remove a file."""
    world.remove_file(world.scene.project, rng.choice(FILES))


def damage_objects(world: World, rng: Random) -> None:
    """Delete artifacts or bodies, or write over them."""
    kinds = ("artifacts", "bodies")
    for info in list(world.objects.scan("projects/")):
        kind = info.key.split("/")[2]
        if kind not in kinds or rng.random() < 0.5:
            continue
        how = rng.choice(["delete", "same size", "other size"])
        if how == "delete":
            world.objects.delete(info.key)
        elif kind == "artifacts":
            size = info.size_bytes if how == "same size" else info.size_bytes + 1
            world.objects.put_bytes(info.key, b"x" * size)


def move_clock(world: World, rng: Random) -> None:
    """Let time pass, or step back."""
    hours = rng.choice([0.1, 1.0, 100.0, 200.0, 1000.0, -1.0, -300.0])
    world.clock.now += timedelta(hours=hours)


def fail_an_agent(world: World, rng: Random) -> None:
    """Let one agent fail in the next run."""
    world.fail_agents({rng.choice(list(world.scene.agents))})


def update_a_program(world: World, rng: Random) -> None:
    """Install another version of a program or model."""
    programs: list[TwinAnalyzer | TwinRenderer | TwinSpeech]
    programs = [world.analyzer, world.renderer, world.speech]
    rng.choice(programs).version = rng.choice(["1", "2"])


def edit_code(world: World, rng: Random) -> None:
    """Edit the user's own modules: a body, a default, a constant, a helper's table, a comment."""
    world.functions.texts = any_version(rng)


def update_a_model(world: World, rng: Random) -> None:
    """Let a provider answer with another model under its own name."""
    rng.choice(list(world.providers.values())).model = rng.choice(["rule-1", "rule-2"])


def damage_entries(world: World, rng: Random) -> None:
    """Delete entries, or change their payloads by hand."""
    entries = world.entries
    records = world.history.of_run(f"run-{max(1, world.runs - 1)}")
    for record in records:
        if record.cache_key is None:
            continue
        entry = entries.get(record.project_id, record.cache_key, now=world.clock.now)
        if entry is None or rng.random() < 0.5:
            continue
        if rng.random() < 0.5:
            entries.delete(
                entry.project_id,
                entry.cache_key,
                reason=CacheReason.INVALIDATED,
                now=world.clock.now,
            )
        else:
            payload = entry.payload.replace("a", "b")
            entries.put(entry.model_copy(update={"payload": payload}))


def edit_during_a_run(world: World, rng: Random) -> None:
    """Replace a file while agents work; that run serves only itself."""
    name, project = rng.choice(FILES[:2]), world.scene.project
    data = rng.choice(BYTES["md"])
    before = rng.choice(list(world.scene.agents))

    def replaced(agent: str) -> None:
        if agent == before:
            world.add_file(project, name, data)

    for provider in world.providers.values():
        provider.before_call = replaced
    try:
        world.run(world.services(), world.scene.request or "moving")
    finally:
        for provider in world.providers.values():
            provider.before_call = lambda _agent: None


def _of_scene(edit: Callable[..., object]) -> WorldEdit:
    def applied(world: World, rng: Random) -> None:
        scene = edit(world.scene, rng)
        if scene.is_valid():  # type: ignore[attr-defined]  # A scene.
            world.scene = scene  # type: ignore[assignment]  # A scene.

    return applied


EDITS: dict[str, WorldEdit] = {
    **{edit.__name__: _of_scene(edit) for edit in SCENE_EDITS},
    **{
        edit.__name__: edit
        for edit in (
            put_file,
            remove_file,
            damage_objects,
            move_clock,
            fail_an_agent,
            update_a_program,
            edit_code,
            update_a_model,
            damage_entries,
            edit_during_a_run,
        )
    },
}
"""Every edit, by name."""

Edit = tuple[str, int]


@dataclass(frozen=True)
class EditSequence:
    """A first scene and the edits after it."""

    seed: int
    edits: tuple[Edit, ...]

    def __str__(self) -> str:
        return f"scene {self.seed}, then " + ", ".join(f"{name}({n})" for name, n in self.edits)


@dataclass
class Tally:
    """What was checked."""

    sequences: int = 0
    runs: int = 0
    steps: int = 0
    hits: int = 0
    edits: Counter[str] = field(default_factory=Counter)


def sequence_of(seed: int) -> EditSequence:
    """Return the sequence of a seed."""
    rng = Random(seed)
    names = [*EDITS, "put_file", "edit_inputs", "damage_objects", "twin_step"]
    count = rng.randint(2, EDITS_MAX)
    edits = tuple((rng.choice(names), rng.randrange(1000)) for _ in range(count))
    return EditSequence(seed, edits)


def findings_of(
    sequence: EditSequence,
    tally: Tally | None = None,
    make_entries: Callable[[Path], EntryStore] | None = None,
) -> list[Finding]:
    """Run a sequence; return what is wrong at the first step at which something is."""
    with TemporaryDirectory(dir=MEMORY) as name:
        folder = Path(name)
        entries = make_entries(folder) if make_entries is not None else None
        world = World(first_scene(Random(sequence.seed)), folder, entries)
        findings = world.check()
        for edit, seed in sequence.edits:
            if findings:
                break
            rng = Random(seed)
            EDITS[edit](world, rng)
            findings = world.check() or (world.check_repetition() if rng.random() < 0.4 else [])
        if tally is not None:
            tally.sequences += 1
            tally.runs += world.runs
            tally.steps += world.steps
            tally.hits += world.hits
            tally.edits.update(edit for edit, _ in sequence.edits)
        return findings


def shortened(sequence: EditSequence, is_bad: Callable[[EditSequence], bool]) -> EditSequence:
    """Return a failing sequence without the edits that it does not need."""
    edits: Sequence[Edit] = sequence.edits
    at = 0
    while at < len(edits):
        fewer = EditSequence(sequence.seed, (*edits[:at], *edits[at + 1 :]))
        if is_bad(fewer):
            edits = fewer.edits
        else:
            at += 1
    return EditSequence(sequence.seed, tuple(edits))
