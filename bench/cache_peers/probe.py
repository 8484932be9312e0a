"""One step under one cache, in this process. Run as a program: `probe.py PEER STORE CODE ARGUMENT`.

CODE is a folder with the modules of `probes.py`; ARGUMENT is JSON. Prints `VALUE` with the step's
answer as JSON, or `ERROR`.
"""

import importlib
import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict


def joblib(store: Path, steps: Any, argument: object) -> object:
    """`joblib.Memory`."""
    return importlib.import_module("joblib").Memory(store, verbose=0).cache(steps.step)(argument)


def diskcache(store: Path, steps: Any, argument: object) -> object:
    """`diskcache.Cache.memoize`, types told apart."""
    cache = importlib.import_module("diskcache").Cache(store)
    return cache.memoize(name="step", typed=True)(steps.step)(argument)


class State(TypedDict):
    """What travels through LangGraph's graph."""

    x: Any
    answer: Any


def langgraph(store: Path, steps: Any, argument: object) -> object:
    """LangGraph with its `SqliteCache`; the node is the user's own function."""
    graph: Any = importlib.import_module("langgraph.graph")
    policy = importlib.import_module("langgraph.types").CachePolicy()
    caches: Any = importlib.import_module("langgraph.cache.sqlite")
    if not store.is_file():
        store.mkdir(exist_ok=True)
    built = graph.StateGraph(State)
    built.add_node("node", steps.node, cache_policy=policy)
    built.add_edge(graph.START, "node")
    built.add_edge("node", graph.END)
    app = built.compile(cache=caches.SqliteCache(path=str(store / "cache.db")))
    answer: object = app.invoke({"x": argument, "answer": None})["answer"]
    return answer


def hamilton(store: Path, _steps: Any, argument: object) -> object:
    """Hamilton's `with_cache`."""
    builder = importlib.import_module("hamilton.driver").Builder()
    module = importlib.import_module("hamilton_steps")
    built = builder.with_modules(module).with_cache(path=str(store)).build()
    answer: object = built.execute(["out"], inputs={"x": argument})["out"]
    return answer


def prefect(_store: Path, steps: Any, argument: object) -> object:
    """Prefect 3, keyed by inputs and the task's source."""
    module: Any = importlib.import_module("prefect")
    policies: Any = importlib.import_module("prefect.cache_policies")
    policy = policies.INPUTS + policies.TASK_SOURCE
    task = module.task(cache_policy=policy, persist_result=True)(steps.step)
    answer: object = module.flow(lambda: task(argument), name="probe")()
    return answer


def redun(store: Path, steps: Any, argument: object) -> object:
    """Redun with its SQLite back end."""
    module: Any = importlib.import_module("redun")
    config: Any = importlib.import_module("redun.config")
    task = module.task(name="step", namespace="probe")(steps.step)
    if not store.is_file():
        store.mkdir(exist_ok=True)
    database = {"backend": {"db_uri": f"sqlite:///{store / 'redun.db'}"}}
    scheduler = module.Scheduler(config=config.Config(database))
    scheduler.load(migrate=True)
    logging.getLogger("redun").setLevel(logging.CRITICAL)
    answer: object = scheduler.run(task(argument))
    return answer


PEERS: dict[str, Callable[[Path, Any, object], object]] = {
    "joblib": joblib,
    "diskcache": diskcache,
    "langgraph": langgraph,
    "hamilton": hamilton,
    "prefect": prefect,
    "redun": redun,
}


def main() -> None:
    """Run the step and print what it gave."""
    peer, store, code, argument = sys.argv[1:5]
    sys.path.insert(0, code)
    steps = importlib.import_module("steps")
    try:
        answer = PEERS[peer](Path(store).absolute(), steps, json.loads(argument))
        print("VALUE " + json.dumps(answer), flush=True)
    except BaseException as error:  # noqa: BLE001 - Whatever ended the step is the finding.
        print(f"ERROR {type(error).__name__}: {str(error)[:160]!r}", flush=True)


if __name__ == "__main__":
    main()
