"""Functions as users write them, in a few versions that differ in one place each."""

from random import Random

_STEPS = """
import helpers
from reprise.model.function import FunctionInputs, FunctionResult

LIMIT = {limit}

def _own(value):
    return helpers.shorten(value, LIMIT)

def summary(inputs: FunctionInputs, suffix="{suffix}") -> object:
    # {comment}
    seen = [sorted(map(str, inputs.outputs.items())), sorted(inputs.labels.items())]
    seen += [inputs.resolved_input, sorted(map(str, inputs.mapped.items()))]
    seen += [inputs.user_request, sorted((k, repr(v)) for k, v in inputs.variables.items())]
    seen += [(f.name, f.content_digest, inputs.read_bytes(f.name)) for f in inputs.files]
    return _own(repr(seen)) + suffix

def gate(inputs: FunctionInputs) -> FunctionResult:
    stop = len(inputs.resolved_input) % {modulus} == 0
    made = inputs.workdir / "gate.txt"
    made.write_text(repr((stop, inputs.user_request)))
    return FunctionResult(
        {{"n": len(inputs.resolved_input)}},
        variables={{"gated": helpers.mark(stop)}},
        prompt_output=None if stop else [LIMIT, "a gate"],
        stop_workflow=stop,
        sets_output_variable=not stop,
        artifacts={{"gate.txt": made}},
    )

def unrelated():
    return {unrelated}
"""

_HELPERS = """
import hashlib

MARKS = {marks}

def shorten(value, limit):
    return hashlib.sha256(value.encode()).hexdigest()[:limit]

def mark(stop):
    return MARKS[stop]
"""

VERSIONS: tuple[dict[str, object], ...] = (
    {},
    {"limit": 13},
    {"suffix": "!"},
    {"comment": "another comment"},
    {"modulus": 2},
    {"unrelated": 2},
    {"marks": {True: 1, False: 0}},
    {"marks": {True: True, False: False}},
)

_PLAIN: dict[str, object] = {
    "limit": 12,
    "suffix": "",
    "comment": "a comment",
    "modulus": 3,
    "unrelated": 1,
    "marks": {True: "stop", False: "go"},
}


def module_texts(version: int) -> dict[str, str]:
    """Return module name → text of a version."""
    values = {**_PLAIN, **VERSIONS[version]}
    return {"steps": _STEPS.format(**values), "helpers": _HELPERS.format(**values)}


def any_version(rng: Random) -> dict[str, str]:
    """Return module name → text of some version."""
    return module_texts(rng.randrange(len(VERSIONS)))
