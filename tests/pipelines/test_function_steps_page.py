"""The page docs/concepts/function-steps.md shows what runs."""

import re
from pathlib import Path

from reprise.model.result import StepStatus
from reprise.model.workflow import FunctionConfig
from tests.pipelines.engine import Engine

PAGE = (Path(__file__).parents[2] / "docs/concepts/function-steps.md").read_text("utf-8")
BLOCK = re.compile(r"```(?:python|yaml)\n# workflows/(\S+)\n(.*?)```", re.DOTALL)

FINDING = "def find(inputs):\n    return [{'seconds': 1.0}, {'seconds': %s}]\n"


def test_the_example_runs_stops_and_is_cached(engine: Engine) -> None:
    (engine.workflows / "functions").mkdir()
    for name, text in BLOCK.findall(PAGE):
        (engine.workflows / name).write_text(text.replace("id: clips", "id: w"))
    finding = engine.workflows / "functions" / "finding.py"
    engine.project("p")
    statuses = []
    for seconds in ("3.0", "3.0", "1.5"):
        finding.write_text(FINDING % seconds)
        record = engine.records(engine.run())["keep"]
        assert record.reference is not None
        seen = record.reference.seen
        statuses.append((record.status, record.from_cache, seen.stop_workflow))

    assert statuses == [
        (StepStatus.SUCCEEDED, False, False),
        (StepStatus.SUCCEEDED, True, False),
        (StepStatus.SUCCEEDED, False, True),
    ]
    assert set(seen.variables) == {"keep_output", "clip_count"}


def test_the_page_names_every_key_of_the_config() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == set(
        FunctionConfig.model_fields
    )
