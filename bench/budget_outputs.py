"""Outputs as steps give them, made from a seed, with facts planted whose survival can be counted.

A fact is a token that stands nowhere else in its document, which names the facts of each class.

Source: specification B14.
"""

import random
from collections import defaultdict
from dataclasses import dataclass, field

from pydantic import JsonValue

from reprise.canonical import canonical_json

WORDS = (
    *("scene", "cut", "beat", "hook", "caption", "music", "subject", "camera", "face", "logo"),
    *("transition", "zoom", "speaker", "product", "quote", "intro", "waves", "harbour", "market"),
    *("light", "crowd", "silence", "title", "colour", "frame"),
)

CLASSES = (
    "storage key",
    "id",
    "score, verdict",
    "late key",
    "item, first third",
    "item, middle third",
    "item, last third",
    "text, head",
    "text, tail",
)
"""What a digest is to keep some of."""

TEXT_MIDDLE = "text, middle"
"""What no strategy tries to keep: there is no telling which part of a long text matters."""


@dataclass
class Planted:
    """An output and its facts."""

    value: JsonValue = None
    facts: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    @property
    def text(self) -> str:
        """The output as a prompt would hold it."""
        return canonical_json(self.value, sort_keys=False)


class OutputMaker:
    """Makes outputs; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def analysis(self, scenes: int) -> Planted:
        """Return an analysis: scenes with measures and words, a report, totals at the end."""
        made = Planted()
        rows: list[JsonValue] = [
            {
                "id": index,
                "start": round(index * 3.37, 3),
                "luma": round(self._random.random() * 255, 2),
                "summary": self._fact(made, _third(index, scenes)) + " " + self._sentence(30),
                "words": [
                    {"word": word, "start": round(index * 3.37 + place * 0.21, 3)}
                    for place, word in enumerate(self._random.choices(WORDS, k=20))
                ],
            }
            for index in range(scenes)
        ]
        made.value = {
            "view": "analysis",
            "source": {
                "storage_key": f"projects/holiday/{self._fact(made, 'storage key')}/beach.mp4",
                "source_id": self._fact(made, "id"),
                "fps": 29.97,
            },
            "scenes": rows,
            "report": self._report(made, 400),
            "verdict": self._fact(made, "score, verdict"),
            "zz_total": self._fact(made, "late key"),
        }
        return made

    def listing(self, files: int) -> Planted:
        """Return a list of files with their keys, ids and scores, each of them worth having."""
        made = Planted()
        made.value = [
            {
                "clip_id": self._fact(made, "id"),
                "storage_key": "projects/holiday/footage/2026/week-31/camera-b/take-"
                f"{index:04}/{self._fact(made, 'storage key')}/original.mp4",
                "score": f"0.{self._fact(made, 'score, verdict')}",
                "caption": self._fact(made, _third(index, files)) + " " + self._sentence(40),
            }
            for index in range(files)
        ]
        return made

    def reviews(self, count: int) -> Planted:
        """Return long reviews in an object, with a verdict each and a summary at the end."""
        made = Planted()
        reviews: dict[str, JsonValue] = {
            f"reviewer_{index}": {
                "review_id": self._fact(made, "id"),
                "status": self._fact(made, "score, verdict"),
                "review": self._report(made, 150),
                "notes": [
                    self._fact(made, _third(place, 30)) + " " + self._sentence(8)
                    for place in range(30)
                ],
            }
            for index in range(count)
        }
        made.value = {**reviews, "summary": self._fact(made, "late key")}
        return made

    def all_kinds(self, count: int) -> list[Planted]:
        """Return so many outputs of each kind, of sizes from small to large."""
        pick = self._random.randint
        return [
            *(self.analysis(pick(40, 300)) for _ in range(count)),
            *(self.listing(pick(40, 300)) for _ in range(count)),
            *(self.reviews(pick(4, 14)) for _ in range(count)),
        ]

    def _report(self, made: Planted, words: int) -> str:
        head, middle, tail = (
            self._fact(made, name) for name in ("text, head", TEXT_MIDDLE, "text, tail")
        )
        return f"{head} {self._sentence(words)} {middle} {self._sentence(words)} {tail}"

    def _fact(self, made: Planted, name: str) -> str:
        token = f"F{self._random.getrandbits(48):012x}"
        made.facts[name].append(token)
        return token

    def _sentence(self, words: int) -> str:
        return " ".join(self._random.choices(WORDS, k=words))


def _third(index: int, count: int) -> str:
    return f"item, {('first', 'middle', 'last')[3 * index // count]} third"
