"""One Function step under the engine's cache, for bench/cache_peers/probes.py.

A program: `engine_probe STORE CODE ARGUMENT`. CODE holds `engine_steps.py`, `helper.py` and
`data.txt`, which is kept in the project; ARGUMENT is JSON and becomes the variable `x`.
"""

import json
import logging
import sys
from dataclasses import replace
from pathlib import Path

import yaml

from pipelines.definitions import Wiring
from pipelines.run_step import run_step
from pipelines.step_run import StepRun
from reprise.model.result import SeenStep, StepStatus
from resources.settings import Settings

PROJECT = "probe"


def main() -> None:
    """Run the step and print what it gave."""
    logging.disable()
    store, code, argument = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
    (store / "workflows" / "functions").mkdir(parents=True, exist_ok=True)
    for name in ("engine_steps.py", "helper.py"):
        target = store / "workflows" / "functions" / name
        text = (code / name).read_text()
        if not target.exists() or target.read_text() != text:
            target.write_text(text)
    function = {"callable": "engine_steps:step", "pure": True}
    step = {"order": 1, "label": "step", "type": "Function", "function": function}
    workflow = {"id": "probe", "variables": {"x": "?"}, "steps": [step]}
    (store / "workflows" / "probe.yaml").write_text(yaml.safe_dump(workflow))
    try:
        print("VALUE " + json.dumps(_run(store, code, argument)), flush=True)
    except BaseException as error:  # noqa: BLE001 - Whatever ended the step is the finding.
        print(f"ERROR {type(error).__name__}: {str(error)[:160]!r}", flush=True)


def _run(store: Path, code: Path, argument: object) -> object:
    wiring = Wiring(Settings(home=store / "home", workflows_dir=store / "workflows"))
    services = wiring.services
    wiring.projects.add_project(PROJECT, now=services.clock())
    ingest = wiring.ingest
    ingest.add(PROJECT, [code / "data.txt"], lambda _name, _change: None)
    loaded = services.workflows["probe"]
    workflow = loaded.model_copy(update={"variables": {"x": argument}})
    request = SeenStep(
        order=0,
        label="request",
        type=None,
        status=StepStatus.SUCCEEDED,
        body_digest=services.bodies.put(PROJECT, "go"),
    )
    services = replace(services, workflows={"probe": workflow})
    run = StepRun(workflow, workflow.steps[0], PROJECT, "0" * 32, {0: request})
    return run_step(run, services).result.output


if __name__ == "__main__":
    main()
