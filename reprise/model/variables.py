"""How a text names variables: `{{name}}`.

Source: specification W2.
"""

import re

VARIABLE = re.compile(r"\{\{\s*([A-Za-z0-9_]+)\s*\}\}")
"""A variable's place in a text; group 1 is its name."""

REQUEST_VARIABLE = "request"
"""The variable that always holds the user's free-text request."""


def variable_names(text: str) -> tuple[str, ...]:
    """Return the variables that a text names, each once, in order of appearance."""
    return tuple(dict.fromkeys(VARIABLE.findall(text)))
