"""The chain of eleven under each cache. Run as a program: `peers.py PEER STORE`.

Modules of peers are imported by name: only their own environment has them.
"""

import hashlib
import importlib
import logging
import sqlite3
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

from work import STEPS, joined, report, work

Chain = Callable[[], str]
Step = Callable[[int, str], str]


def nothing(_store: Path) -> Chain:
    """No cache: the steps really run."""
    return lambda: _by_calls(work)


def raw_sqlite(store: Path) -> Chain:
    """The least: SHA-256 of the input and a select by primary key."""

    def chain() -> str:
        store.mkdir(exist_ok=True)
        connection = sqlite3.connect(store / "raw.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS entry (project TEXT, key BLOB, value TEXT, expires REAL, "
            "PRIMARY KEY (project, key))"
        )

        def step(order: int, resolved_input: str) -> str:
            data = resolved_input.encode()
            key = hashlib.sha256(b"%d:%d:" % (order, len(data)) + data).digest()
            rows = connection.execute(
                "SELECT value FROM entry WHERE project = 'p' AND key = ? AND expires > ?",
                (key, time.time()),
            ).fetchall()
            if rows:
                return str(rows[0][0])
            value = work(order, resolved_input)
            row = (key, value, time.time() + 3600)
            connection.execute("INSERT INTO entry VALUES ('p', ?, ?, ?)", row)
            return value

        return _by_calls(step)

    return chain


def joblib(store: Path) -> Chain:
    """`joblib.Memory`."""
    module: Any = importlib.import_module("joblib")

    def step(order: int, resolved_input: str) -> str:
        return work(order, resolved_input)

    return lambda: _by_calls(module.Memory(store, verbose=0).cache(step))


def diskcache(store: Path) -> Chain:
    """`diskcache.Cache.memoize`."""
    module: Any = importlib.import_module("diskcache")
    return lambda: _by_calls(module.Cache(store).memoize(name="step")(work))


class State(TypedDict):
    """What travels through LangGraph's graph."""

    history: str
    last: str


def langgraph(store: Path) -> Chain:
    """LangGraph with its `SqliteCache`."""
    graph: Any = importlib.import_module("langgraph.graph")
    types: Any = importlib.import_module("langgraph.types")
    caches: Any = importlib.import_module("langgraph.cache.sqlite")

    def node(order: int) -> Callable[[State], State]:
        def run(state: State) -> State:
            last = work(order, state["history"])
            gap = "\n" if state["history"] else ""
            return {"history": f"{state['history']}{gap}## Step {order}\n{last}", "last": last}

        run.__name__ = f"step{order}"
        return run

    def chain() -> str:
        store.mkdir(exist_ok=True)
        built = graph.StateGraph(State)
        before = graph.START
        for order in range(STEPS):
            built.add_node(f"step{order}", node(order), cache_policy=types.CachePolicy())
            built.add_edge(before, f"step{order}")
            before = f"step{order}"
        built.add_edge(before, graph.END)
        app = built.compile(cache=caches.SqliteCache(path=str(store / "cache.db")))
        return str(app.invoke({"history": "", "last": ""})["last"])

    return chain


def hamilton(store: Path) -> Chain:
    """Hamilton's `with_cache`; its steps have to stand in a file."""
    driver: Any = importlib.import_module("hamilton.driver")
    store.mkdir(exist_ok=True)
    source = "from work import joined, work\n"
    for order in range(STEPS):
        names = [f"s{number}" for number in range(order)]
        arguments = ", ".join(f"{name}: str" for name in names)
        source += textwrap.dedent(
            f"""
            def s{order}({arguments}) -> str:
                return work({order}, joined([{", ".join(names)}]))
            """
        )
    (store / "hamilton_steps.py").write_text(source)
    sys.path.insert(0, str(store))
    steps = importlib.import_module("hamilton_steps")

    def chain() -> str:
        built = driver.Builder().with_modules(steps).with_cache(path=str(store / "cache")).build()
        last = f"s{STEPS - 1}"
        return str(built.execute([last])[last])

    return chain


def prefect(_store: Path) -> Chain:
    """Prefect 3 with results on disk, keyed by inputs and the task's source."""
    module: Any = importlib.import_module("prefect")
    policies: Any = importlib.import_module("prefect.cache_policies")

    def step(order: int, resolved_input: str) -> str:
        return work(order, resolved_input)

    policy = policies.INPUTS + policies.TASK_SOURCE
    task = module.task(cache_policy=policy, persist_result=True)(step)

    def chain() -> str:
        return _by_calls(task)

    flow: Chain = module.flow(chain)
    return flow


def redun(store: Path) -> Chain:
    """Redun with its SQLite back end."""
    module: Any = importlib.import_module("redun")
    config: Any = importlib.import_module("redun.config")
    store.mkdir(exist_ok=True)

    def step(order: int, before: list[str]) -> str:
        return work(order, joined(before))

    task = module.task(name="step", namespace="bench")(step)

    def main() -> Any:
        outputs: list[Any] = []
        for order in range(STEPS):
            outputs.append(task(order, list(outputs)))
        return outputs[-1]

    whole = module.task(name="main", namespace="bench")(main)

    def chain() -> str:
        database = {"backend": {"db_uri": f"sqlite:///{store / 'redun.db'}"}}
        scheduler = module.Scheduler(config=config.Config(database))
        scheduler.load(migrate=True)
        logging.getLogger("redun").setLevel(logging.ERROR)
        return str(scheduler.run(whole()))

    return chain


def _by_calls(step: Step) -> str:
    outputs: list[str] = []
    for order in range(STEPS):
        outputs.append(step(order, joined(outputs)))
    return outputs[-1]


PEERS: dict[str, Callable[[Path], Chain]] = {
    "no cache": nothing,
    "raw SQLite": raw_sqlite,
    "joblib": joblib,
    "diskcache": diskcache,
    "langgraph": langgraph,
    "hamilton": hamilton,
    "prefect": prefect,
    "redun": redun,
}

if __name__ == "__main__":
    report(PEERS[sys.argv[1]](Path(sys.argv[2]).absolute()))
