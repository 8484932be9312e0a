"""A run with a cache store of the user's own, as docs/operations/run-it.md shows one."""

import logging
import re
from pathlib import Path

import pytest

from apps.cli import main
from pipelines.definitions import Wiring
from reprise.model.settings import StepCacheSettings
from tests.pipelines.engine import Engine

PAGE = (Path(__file__).parents[2] / "docs/operations/run-it.md").read_text("utf-8")
BLOCK = re.compile(r"```python\n# workflows/(\S+)\n(.*?)```", re.DOTALL)


def patient(store: str) -> StepCacheSettings:
    return StepCacheSettings(
        store=store, lookup_deadline_seconds=60, store_deadline_seconds=60, head_deadline_seconds=60
    )


@pytest.fixture
def own(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An engine whose workflows folder has the store of the page."""
    monkeypatch.chdir(engine.root)
    (engine.workflows / "functions").mkdir()
    for name, text in BLOCK.findall(PAGE):
        (engine.workflows / name).write_text(text)
    engine.agents_workflow({"a": [], "b": [1]})
    engine.project("p")
    return engine


def test_the_store_of_the_page_serves_a_second_run(own: Engine) -> None:
    own.step_cache = patient("folder_store:FolderStore")
    own.run()
    assert own.executed() == {"a", "b"}
    again = own.records(own.run())
    assert own.executed() == set()
    assert all(record.from_cache for record in again.values())
    assert any((own.root / "shared-cache").iterdir())


def test_an_edit_is_noticed_and_explained_from_a_store_of_ones_own(own: Engine) -> None:
    own.step_cache = patient("folder_store:FolderStore")
    own.run()
    own.executed()
    own.agent("b", "You are another b.")
    record = own.records(own.run())["b"]
    assert own.executed() == {"b"}
    assert [change.field for change in record.cache_changes] == ["agent_system_prompt"]


class Least:
    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def get(self, key: str) -> str | None:
        return self.values.get(key)

    def set(self, key: str, value: str) -> None:
        self.values[key] = value


def test_an_object_given_in_python_is_used_and_a_large_result_stays_in_it(own: Engine) -> None:
    own.store = Least()
    own.step_cache = patient("auto").model_copy(update={"inline_bytes_max": 8})
    own.run()
    own.executed()
    own.run()
    assert own.executed() == set()
    assert list(own.wiring.objects.scan("step-cache/")) == []
    # Nothing to list by: a sweep removes nothing, and is no failure.
    assert own.wiring.cache_wiring.sweep() == (0, 0)


def test_an_object_that_is_no_store_is_refused_where_it_is_given(own: Engine) -> None:
    with pytest.raises(TypeError, match="cannot be a cache store: it has no method 'get'"):
        Wiring(own.wiring.settings, store=object())


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("nosuch:Store", "No module named 'nosuch'"),
        ("folder_store:Nothing", "has no attribute 'Nothing'"),
        ("broken_store:make", "ZeroDivisionError"),
        ("builtins:object", "object object cannot be a cache store: it has no method 'get'"),
        ("postgres", "set REPRISE_DATABASE__URL too"),
    ],
)
def test_a_store_that_cannot_be_had_turns_the_cache_off_with_one_warning(
    own: Engine, store: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    (own.workflows / "broken_store.py").write_text("def make():\n    return 1 / 0\n")
    own.step_cache = patient(store)
    with caplog.at_level(logging.WARNING):
        assert own.run().is_success
        own.executed()
        caplog.clear()
        assert own.run().is_success
    assert own.executed() == {"a", "b"}
    warnings = [text for text in caplog.messages if "cache" in text]
    assert len(warnings) == 1
    assert "the step cache is off, every step executes" in warnings[0]
    assert message in warnings[0]


def test_a_command_on_entries_names_the_setting_that_is_wrong(
    own: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REPRISE_HOME", str(own.root / "home"))
    monkeypatch.setenv("REPRISE_STEP_CACHE__STORE", "nosuch:Store")
    assert main(["cache", "list"]) == 1
    assert "cache store 'nosuch:Store'" in capsys.readouterr().err
    monkeypatch.setenv("REPRISE_STEP_CACHE__STORE", "sqlit")
    assert main(["cache", "list"]) == 2
    assert "REPRISE_STEP_CACHE__STORE" in capsys.readouterr().err


def test_entries_in_memory_serve_one_process_and_no_other(own: Engine) -> None:
    own.step_cache = patient("memory")
    own.run()
    own.executed()
    own.run()
    assert own.executed() == {"a", "b"}
    assert not (own.root / "home" / "step-cache.db").exists()
    job = own.job()
    own.run(job=job)
    own.executed()
    own.run(job=job)
    assert own.executed() == set()
