"""In whose name a run of the UI works: web server, daemon and run as processes.

Source: specification O2a, D15.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.acceptance.ui_process import Ui, UiHome, opened_ui

pytestmark = pytest.mark.slow

WHO = """
from reprise.model.execution import current_execution


def who(inputs):
    return {"initiator": current_execution().initiator_id}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> UiHome:
    root = tmp_path_factory.mktemp("ui")
    made = UiHome(root)
    workflows = Path(made.environment["REPRISE_WORKFLOWS_DIR"])
    (workflows / "people.py").write_text(WHO)
    step = {"order": 1, "label": "who", "type": "Function", "function": {"callable": "people:who"}}
    (workflows / "who.yaml").write_text(yaml.safe_dump({"id": "who", "steps": [step]}))
    made.environment |= {
        "REPRISE_INFERENCE_API__SIGNING_KEY": "a signing key of the UI, of more than 32 bytes",
        "REPRISE_INFERENCE_API__PROXY_HEADER": "X-Forwarded-Email",
    }
    brief = root / "brief.md"
    brief.write_text("# Who\n")
    made.add("p", brief)
    code, _, errors = made.call("user", "add", "ann@example.org", "--id", "ann")
    assert code == 0, errors
    return made


@pytest.fixture(scope="module")
def ui(home: UiHome) -> Iterator[Ui]:
    with opened_ui(home) as opened:
        yield opened


def initiator(home: UiHome, ui: Ui, run_id: str) -> object:
    """Return in whose name the finished run's step worked, as the step itself saw it."""
    assert ui.ended(run_id) == "SUCCESS"
    code, out, errors = home.call("results", "who", "p", "--json")
    assert code == 0, errors
    (step,) = json.loads(out)["steps"]
    assert step["run_id"] == run_id
    return step["output"]["initiator"]


def test_a_run_works_in_the_name_of_the_proxys_user(home: UiHome, ui: Ui) -> None:
    ui.headers = {"X-Forwarded-Email": "Ann@example.org"}
    run_id = ui.launch("who", "p")
    assert initiator(home, ui, run_id) == "ann"
    tags = {tag["key"]: tag["value"] for tag in ui.run(run_id)["tags"]}
    assert tags["reprise/initiator"] == "ann"
    assert tags["reprise/project"] == "p"


def test_without_the_header_it_works_in_nobodys_name_whatever_the_tags_were(
    home: UiHome, ui: Ui
) -> None:
    ui.headers = {"X-Forwarded-Email": "ann@example.org"}
    anns = ui.launch("who", "p")
    assert ui.ended(anns) == "SUCCESS"
    ui.headers = {}
    # The button copies the tags of the run before.
    assert initiator(home, ui, ui.re_execute(anns)) is None
