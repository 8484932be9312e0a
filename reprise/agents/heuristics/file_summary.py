"""File summarizer: the sentences of a document that carry most of its frequent words.

What belongs to a recording and not to its subject is left out. The first sentence or title stays
first; then come the sentences with the densest content, in the order in which they stand, as far as
there is room.
"""

import re

from pydantic import JsonValue

from reprise.agents.heuristics.words import clip, density, is_filler, term_weights
from reprise.model.conversation import AgentInputs

CHARS_MAX = 300
SENTENCES_MAX = 400

_END = re.compile(r"(?<=[.!?…])\s+|\n\s*\n|\n(?=\s*(?:[-*|#>]|\d+\.))")
_MARK = re.compile(r"^[\s#>*-]+|[*`]+")


def file_summarizer(inputs: AgentInputs) -> JsonValue:
    """Return an extract of the first document."""
    text = inputs.documents[0].text if inputs.documents else ""
    sentences = [
        plain
        for part in _END.split(text)[:SENTENCES_MAX]
        if (plain := " ".join(_MARK.sub("", part.replace("|", " ")).split()))
    ]
    sentences = [each for each in sentences if not is_filler(each)] or sentences
    if not sentences:
        return {"summary": "It holds no sentences."}
    weights = term_weights(sentences)
    # Rounded: the sum behind it has no order of its own.
    densities = [round(density(sentence, weights), 6) for sentence in sentences]
    ranked = sorted(range(1, len(sentences)), key=lambda at: (-densities[at], at))
    chosen, size = {0}, len(sentences[0])
    for at in ranked:
        if size + len(sentences[at]) + 1 <= CHARS_MAX:
            chosen.add(at)
            size += len(sentences[at]) + 1
    return {"summary": clip(" ".join(sentences[at] for at in sorted(chosen)), CHARS_MAX)}
