"""The chain of bench/cache_peers under the engine. A program: `engine_chain MODE STORE`.

Mode `cache` is what the peers are: key, look-up and store around a function call. Mode `steps` is
the whole path of a step outside Dagster: inputs read from bodies, key, look-up, record, bodies.

Source: specification P2.
"""

import hashlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import yaml

from bench.cache_peers.work import OUTPUT_CHARS, STEPS, executed, joined, work
from pipelines.definitions import Wiring
from pipelines.records import record_of
from pipelines.run_step import run_step
from pipelines.step_run import StepRun
from reprise.cache.explain import explained_digests
from reprise.cache.key import KeyFacts, cache_key, field_digests, key_fields
from reprise.cache.lookup import StepCost, StepIdentity
from reprise.model.result import SeenStep, StepResult, StepStatus
from reprise.model.settings import StepCacheSettings
from resources.settings import Settings

PROJECT = "bench"
WORKFLOW = "chain"
FUNCTION = "chain:step"
CODE = """
from work import joined, work


def step(inputs):
    outputs = [inputs.outputs[order] for order in sorted(inputs.outputs)]
    return work(len(outputs), joined(outputs))
"""


def main() -> None:
    """Run one chain and print what the driver reads."""
    mode, store = sys.argv[1], Path(sys.argv[2]).absolute()
    wiring = _wiring(store)
    chains: dict[str, Callable[[Wiring], tuple[str, int]]] = {"cache": _cache, "steps": _steps}
    start = time.perf_counter()
    last, ran = chains[mode](wiring)
    seconds = time.perf_counter() - start
    digest = hashlib.sha256(last.encode()).hexdigest()
    line = {"seconds": seconds, "executed": ran, "digest": digest[:16]}
    print("RESULT " + json.dumps(line), flush=True)


def _wiring(store: Path) -> Wiring:
    functions = store / "workflows" / "functions"
    if not functions.exists():
        functions.mkdir(parents=True)
        (functions / "chain.py").write_text(CODE)
        source = Path(__file__).parent / "cache_peers" / "work.py"
        (functions / "work.py").write_text(source.read_text())
        steps = [
            {
                "order": order,
                "label": f"step {order}",
                "type": "Function",
                "function": {"callable": FUNCTION, "pure": True, "files": []},
            }
            for order in range(1, STEPS + 1)
        ]
        workflow = {"id": WORKFLOW, "steps": steps}
        (store / "workflows" / "chain.yaml").write_text(yaml.safe_dump(workflow))
    # Two loaded cores must not turn a hit into a miss.
    knobs = StepCacheSettings(lookup_deadline_seconds=30.0, store_deadline_seconds=30.0)
    wiring = Wiring(
        Settings(home=store / "home", workflows_dir=store / "workflows", step_cache=knobs)
    )
    # A project and the definitions are there before a chain begins, as an imported module is.
    wiring.projects.add_project(PROJECT, now=wiring.services.clock())
    assert WORKFLOW in wiring.services.workflows
    return wiring


def _cache(wiring: Wiring) -> tuple[str, int]:
    cache = wiring.cache
    outputs: list[str] = []
    facts = KeyFacts(function_fingerprint=wiring.functions.load(FUNCTION).fingerprint())
    for order, step in enumerate(wiring.services.workflows[WORKFLOW].steps):
        resolved_input = joined(outputs)
        fields = key_fields(
            step,
            facts,
            project_id=PROJECT,
            resolved_input=resolved_input,
            user_request=None,
            variables={"order": order},
        )
        digests = field_digests(fields)
        identity = StepIdentity(
            project_id=PROJECT,
            workflow_id=WORKFLOW,
            step_label=step.label,
            step_type=step.type.value,
            agent_id=None,
            cache_key=cache_key(digests),
            field_digests=explained_digests(digests, {}, facts, {}),
        )
        looked = cache.lookup(identity)
        if looked.result is None:
            result = StepResult(output=work(order, resolved_input))
            cache.store(identity, result, StepCost("0" * 32, 0.001))
        else:
            result = looked.result
        outputs.append(str(result.output))
    assert sum(map(len, outputs)) > OUTPUT_CHARS
    return outputs[-1], len(executed)


def _steps(wiring: Wiring) -> tuple[str, int]:
    services = wiring.services
    workflow = services.workflows[WORKFLOW]
    request = SeenStep(
        order=0,
        label="request",
        type=None,
        status=StepStatus.SUCCEEDED,
        body_digest=services.bodies.put(PROJECT, "go"),
    )
    history = {0: request}
    ran, last = 0, ""
    for step in workflow.steps:
        run = StepRun(workflow, step, PROJECT, "0" * 32, dict(history))
        outcome = run_step(run, services)
        record = record_of(run, outcome, services)
        assert record.reference is not None
        history[step.order] = record.reference.seen
        ran += not record.from_cache
        last = str(outcome.result.output)
    return last, ran


if __name__ == "__main__":
    main()
