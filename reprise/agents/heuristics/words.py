"""Words of a text as terms, and what a sentence's wording tells.

English stop words and markers; in other languages the rules still work, by frequency alone.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+(?:[.,]\d+)*")

NAME = re.compile(r"\b[A-Z][\w'’]+(?: [A-Z][\w'’]+){1,3}\b")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


STOP_WORDS = _set(
    """
    a about above after again against all almost along already also although always am among an and
    another any are as at away be because been before being below between both but by can cannot
    came come could did do does doing done down during each either else even ever every few for from
    further get give given go goes going gone good got had has have having he her here hers herself
    him himself his how however i if in into is it its itself just know let like made make many may
    maybe me might more most much must my myself never no nor not now of off often on once one only
    or other our ours out over own people perhaps put quite rather really same say see seem shall
    she should since so some something still such take than that the their them then there therefore
    these they thing things think this those though through to too under until up upon us very was
    way we well were what when where whether which while who whole whom whose why will with without
    would yes yet you your yours okay ok sorry um uh please i'm you're it's that's don't doesn't
    didn't isn't aren't we're they're i've we've you've let's
    """
)

FILLER = re.compile(
    r"\b(?:um+|uh+|er+m|sorry|microphone|mic|testing|one (?:second|moment|sec)|hold on|"
    r"(?:start|begin|try|do|say) (?:that|this|it|the)?\s*(?:\w+ )?(?:again|over)|let me start|"
    r"from the top|take (?:two|three)|scratch that|cut that|never mind|can you hear|"
    r"is this (?:thing )?on|are we (?:rolling|recording)|where was i|excuse me)\b",
    re.IGNORECASE,
)
"""What is said around a recording and never belongs into a film."""

DEPENDENT_START = _set(
    """
    and but or then because which who whose that this these those it its he she they his her their
    him them unless also such
    """
)
"""A sentence that begins so leans on the one before it."""

DEMONSTRATIVES = frozenset({"this", "that", "these", "those"})
STATES = frozenset({"is", "was", "are", "were", "will", "can", "means"})
"""`This is …` says what it speaks of; `this rabbit …` does not."""

ADDRESS = frozenset({"you", "your", "yours", "yourself"})
ADDRESS_START = frozenset({"imagine", "look", "listen", "picture", "meet", "think"})
STRONG = _set(
    """
    never always everything nothing everybody nobody everyone anyone only first last best worst
    biggest largest smallest greatest fastest impossible unbelievable secret free new power ever
    """
)
POINTING = frozenset({"this", "that", "these", "those", "there", "here", "it", "then"})
"""A sentence that ends with one of these points at something that a stranger has not seen."""
CONTRAST = frozenset({"but", "not", "instead", "yet", "however", "without", "unlike", "though"})
NUMBER_WORDS = _set(
    """
    two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty
    hundred thousand million billion half twice double
    """
)
CALLS = _set(
    """
    download watch join try start visit come share show make find see follow subscribe buy get book
    call write learn read sign
    """
)
"""Verbs that call to action at the beginning of a sentence."""


def tokens(text: str) -> list[str]:
    """Return the words and numbers of a text in lower case."""
    return [token.lower().replace("’", "'") for token in TOKEN.findall(text)]


def stem(token: str) -> str:
    """Return a token without the commonest English endings, so that inflected forms meet."""
    word = token.removesuffix("'s")
    if len(word) > 5 and word.endswith("ies"):
        return word[:-3] + "y"
    for ending in ("ing", "est", "er", "ed", "es"):
        if len(word) >= len(ending) + 4 and word.endswith(ending):
            return word.removesuffix(ending)
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    if len(word) > 4 and word.endswith("e"):
        return word[:-1]
    return word


def terms(text: str) -> list[str]:
    """Return the stems of the words that carry meaning, in order, with repetitions."""
    return [stem(token) for token in tokens(text) if is_content(token)]


def is_content(token: str) -> bool:
    """Answer whether a token carries meaning by itself."""
    return len(token) >= 3 and token not in STOP_WORDS and not token[0].isdigit()


def term_weights(texts: Sequence[str]) -> dict[str, float]:
    """Return the weight of each term over sentences: it grows with its count, as a logarithm."""
    counts = Counter(term for text in texts for term in terms(text))
    return {term: 1.0 + math.log(count) for term, count in counts.items()}


def density(text: str, weights: Mapping[str, float]) -> float:
    """Return how much weight a text carries for its length."""
    found = set(terms(text))
    return sum(weights.get(term, 0.0) for term in found) / math.sqrt(len(tokens(text)) + 4)


def names_in(texts: Sequence[str]) -> dict[str, int]:
    """Return the names of two to four capitalised words that occur twice, with their counts."""
    counts = Counter(name for text in texts for name in NAME.findall(text))
    return {name: count for name, count in counts.items() if count >= 2}


def display_forms(texts: Iterable[str]) -> dict[str, str]:
    """Return for each term the form in which it occurs most often, for people."""
    forms: dict[str, Counter[str]] = {}
    for text in texts:
        for token in tokens(text):
            if is_content(token):
                forms.setdefault(stem(token), Counter())[token] += 1
    return {
        term: min(counted, key=lambda form: (-counted[form], form))
        for term, counted in forms.items()
    }


def is_filler(text: str) -> bool:
    """Answer whether a sentence belongs to the recording and not to the film."""
    return FILLER.search(text) is not None or not any(is_content(t) for t in tokens(text))


def is_dependent(text: str) -> bool:
    """Answer whether a sentence leans on the one before it."""
    said = text.strip()
    if not (said[:1].isupper() or said[:1].isdigit()):
        return True
    first, second = (*tokens(said)[:2], "", "")[:2]
    return first in DEPENDENT_START and not (first in DEMONSTRATIVES and second in STATES)


def points_elsewhere(text: str) -> bool:
    """Answer whether a sentence says too little by itself, or ends by pointing away from itself."""
    said = tokens(text)
    return len(set(terms(text))) < 2 or said[-1] in POINTING


def is_complete(text: str) -> bool:
    """Answer whether a sentence ends as one."""
    return text.rstrip("\"'”’) ").endswith((".", "!", "?", "…"))


def clip(text: str, chars_max: int) -> str:
    """Return a text on one line, cut at a word when it is too long."""
    plain = " ".join(text.split())
    if len(plain) <= chars_max:
        return plain
    cut = plain[: chars_max - 1].rsplit(" ", 1)[0] or plain[: chars_max - 1]
    return cut.rstrip(" ,;:") + "…"
