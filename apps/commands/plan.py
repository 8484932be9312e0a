"""`reprise plan WORKFLOW PROJECT`: what a run would do; exits with 3 when a step would run."""

import argparse
import json
import uuid
from collections.abc import Sequence

from apps.commands.tables import table
from apps.providers import check_providers
from pipelines.compile import check_served
from pipelines.definitions import Wiring
from pipelines.plan import Forecast, PlannedStep, PlanRequest, plan_run
from pipelines.run_options import RunOptions, step_modes
from pipelines.step_run import RunCacheMode
from reprise.model.execution import Execution, executing
from resources.settings import load_settings

EXIT_WOULD_RUN = 3


def main(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    wiring = Wiring(load_settings())
    workflow = wiring.definitions.workflow(arguments.workflow)
    check_served(workflow)
    project = wiring.ingest.require(arguments.project)
    check_providers(wiring, workflow, arguments.provider)
    modes = step_modes(",".join(arguments.step), workflow)
    options = RunOptions(RunCacheMode(arguments.cache), arguments.provider, modes)
    asked = PlanRequest(
        workflow=workflow,
        project_id=project.id,
        request=arguments.request,
        cache=RunCacheMode(arguments.cache),
        steps={step.order: options.cache_of(step) for step in workflow.steps},
        provider_id=arguments.provider,
    )
    # What searches would be answered from is asked of the Inference API, in the user's name.
    user = wiring.behalf.command_line_user()
    name = f"plan-{uuid.uuid4()}"
    initiator_id = None if user is None else user.id
    with executing(Execution(execution_id=name, run_id=name, initiator_id=initiator_id)):
        steps = plan_run(asked, wiring.services)
    print(json.dumps({"steps": [_json(s) for s in steps]}) if arguments.json else _text(steps))
    would_run = any(step.forecast in (Forecast.RUN, Forecast.UNKNOWN) for step in steps)
    return EXIT_WOULD_RUN if would_run else 0


def _json(step: PlannedStep) -> dict[str, object]:
    expected = step.expected
    cost = None if expected is None or expected.cost_micros is None else expected.cost_micros / 1e6
    return {
        "order": step.order,
        "label": step.label,
        "type": step.type,
        "forecast": step.forecast.value,
        "reason": step.reason.value if step.reason is not None else None,
        "detail": step.detail,
        "expected_tokens": expected.tokens if expected is not None else None,
        "expected_cost": cost,
        "expected_seconds": round(expected.seconds, 3) if expected is not None else None,
    }


def _text(steps: Sequence[PlannedStep]) -> str:
    rows = [
        [
            str(step.order),
            step.label,
            step.forecast.value,
            *_figures(step),
            step.detail,
        ]
        for step in steps
    ]
    heads = ["step", "label", "forecast", "tokens", "dollars", "seconds", "why"]
    return f"{table(rows, heads)}\n\n{_total(steps)}"


def _figures(step: PlannedStep) -> list[str]:
    if step.forecast in (Forecast.HIT, Forecast.SKIP):
        return ["0", "0", "0"]
    if step.expected is None:
        return ["-", "-", "-"]
    micros = step.expected.cost_micros
    money = "-" if micros is None else f"{micros / 1e6:.4f}"
    return [str(step.expected.tokens), money, f"{step.expected.seconds:.1f}"]


def _total(steps: Sequence[PlannedStep]) -> str:
    count = {forecast: sum(s.forecast is forecast for s in steps) for forecast in Forecast}
    work = [s for s in steps if s.forecast in (Forecast.RUN, Forecast.UNKNOWN)]
    known = [step.expected for step in work if step.expected is not None]
    line = (
        f"{count[Forecast.HIT]} from the cache, {count[Forecast.RUN]} will run,"
        f" {count[Forecast.UNKNOWN]} unknown until then"
    )
    if not work:
        return line
    if not known:
        return f"{line}; what they take is not known yet"
    tokens = sum(item.tokens for item in known)
    seconds = sum(item.seconds for item in known)
    line += f"; at most about {tokens:,} tokens and {seconds:.1f} s, as the last time"
    new = len(work) - len(known)
    return f"{line}, without {new} that never ran" if new else line
