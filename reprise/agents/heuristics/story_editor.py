"""Story editor: the best thoughts that fit the wanted length, opened by a hook, then in order.

A thought is a sentence with those after it that lean on it. Its worth is made of the analysts'
scores, or of the same rules applied here where an analyst did not speak. Thoughts with wording that
the brand avoids, unclear ones, and ones without a picture are out. They are taken by worth until
the wanted length is reached; long ones only when the short ones do not suffice. Without speech the
best shots are taken.

Source: issue "Foundation", quick-win-promo.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from pydantic import JsonValue

from reprise.agents.heuristics.content import line_scores
from reprise.agents.heuristics.hook import hook_score
from reprise.agents.heuristics.looks import look_at
from reprise.agents.heuristics.material import Line, Material, rows, scores, texts
from reprise.agents.heuristics.words import CALLS, clip, is_dependent, terms, tokens
from reprise.media.film_length import LengthFrame, length_frame, wanted_seconds
from reprise.media.passages import PAUSE_SECONDS_MAX, shot_seconds

CUTS_MAX = 16
SENTENCES_MAX = 4
ALTERNATES_MAX = 5
PAD_SECONDS = 0.3
"""What a cut adds to the words that it carries."""
THOUGHT_SECONDS_MAX = 8.0
"""A thought is not made longer than this."""
THOUGHT_GAP_SECONDS = 1.5
"""A sentence after a longer pause does not lean on the one before."""
LEANING = 0.75
"""Share of its worth that a thought keeps which leans on what may not be shown."""
HOOK_SECONDS_MAX = 8.0
GOOD = 0.5
"""From this score on, a part of a sentence's worth is named as a reason."""
REASONS_MAX = 3
ENOUGH = 0.92
"""Share of the wanted length that is enough."""
TOO_MUCH = 1.08
"""Share of the wanted length that is too much."""


@dataclass(frozen=True)
class Thought:
    """Sentences that follow each other and belong together."""

    lines: tuple[Line, ...]
    """The sentences."""
    worth: float
    """How much it does for the film."""
    why: str
    """The largest part of its worth, for people."""

    @property
    def seconds(self) -> float:
        """What it takes in the film, pauses over the bound taken out."""
        words = [word for line in self.lines for word in line.words]
        spoken = words[-1].end - words[0].start
        for before, word in pairwise(words):
            spoken -= max(0.0, word.start - before.end - PAUSE_SECONDS_MAX)
        return spoken + PAD_SECONDS

    @property
    def ids(self) -> list[JsonValue]:
        """The sentences' ids."""
        return [line.id for line in self.lines]


def story_editor(material: Material) -> JsonValue:
    """Return the proposed cuts."""
    frame = frame_of(material)
    thoughts = thoughts_of(material)
    if not thoughts:
        return _picture_story(material, frame)
    opener = _opener(material, thoughts, frame)
    chosen = _chosen(thoughts, opener, frame, int(material.figure("cuts_min", 4)))
    rest = [each for each in thoughts if each not in chosen]
    cuts: list[JsonValue] = [_cut(each, opener=each is opener) for each in chosen]
    total = sum(each.seconds for each in chosen)
    if total < frame.shortest and len(cuts) < CUTS_MAX:
        cuts += _shot_cuts(material, frame.shortest - total, CUTS_MAX - len(cuts), frame)
    alternates: list[JsonValue] = [
        _cut(each) for each in sorted(rest, key=lambda each: -each.worth)[:ALTERNATES_MAX]
    ]
    approach = (
        f"Opens with {opener.lines[0].id}, then keeps the order in which things were said; "
        f"{len(chosen)} passages, about {total:.1f} of the wanted {frame.target:.1f} s."
    )
    return {"approach": approach, "cuts": cuts, "alternates": alternates}


def frame_of(material: Material) -> LengthFrame:
    """Return the lengths to keep: wanted by the request, else the brief, else the step."""
    target = wanted_seconds(
        material.request, material.inputs.prior, material.figure("target_seconds", 25.0)
    )
    return length_frame(
        target,
        material.figure("seconds_min", 15.0),
        material.figure("seconds_max", 40.0),
        sum(footage.end_seconds for footage in material.footages.values()),
    )


def avoided_ids(material: Material) -> frozenset[str]:
    """Return the sentences with wording that the brand avoids."""
    found = rows(material.answer("brand_analyst"), "words_to_avoid")
    return frozenset(name for row in found for name in texts(row.get("sentence_ids")))


def thoughts_of(material: Material) -> list[Thought]:
    """Return the thoughts that can be used, source by source, by rising time."""
    avoided = avoided_ids(material)
    worths = _worths(material)
    groups: list[list[Line]] = []
    before: Line | None = None
    for line in material.lines:
        leans = (
            before is not None
            and before.footage is line.footage
            and line.start - before.end <= THOUGHT_GAP_SECONDS
            and is_dependent(line.text)
            and line.end - groups[-1][0].start <= THOUGHT_SECONDS_MAX
        )
        if not (leans and groups and len(groups[-1]) < SENTENCES_MAX):
            groups.append([])
        groups[-1].append(line)
        before = line
    thoughts: list[Thought] = []
    for group in groups:
        if any(line.unusable or line.id in avoided for line in group):
            # What leans on something that cannot be shown cannot be shown either.
            group = _usable_head(group, avoided)
        if group:
            best = max(group, key=lambda line: worths[line.id][0])
            mean = sum(worths[line.id][0] for line in group) / len(group)
            mean *= LEANING if is_dependent(group[0].text) else 1.0
            thoughts.append(Thought(tuple(group), round(mean, 4), worths[best.id][1]))
    return thoughts


def _usable_head(group: Sequence[Line], avoided: frozenset[str]) -> list[Line]:
    head: list[Line] = []
    for line in group:
        if line.unusable or line.id in avoided:
            break
        head.append(line)
    return head


def _worths(material: Material) -> dict[str, tuple[float, str]]:
    """Return the worth of each sentence, and what speaks for it."""
    content = scores(material.answer("content_analyst"), "key_moments", "sentence_id")
    content = content or line_scores(material.lines)
    audience = scores(material.answer("audience_analyst"), "relevant_sentences", "sentence_id")
    hooks = scores(material.answer("hook_analyst"), "hooks", "sentence_id")
    looks = scores(material.answer("visual_analyst"), "picks", "shot_id")
    used = rows(material.answer("brand_analyst"), "words_to_use")
    brand = {name for row in used for name in texts(row.get("sentence_ids"))}
    asked = set(terms(material.request))
    about = _reasons(material.answer("content_analyst"), "key_moments")
    worths: dict[str, tuple[float, str]] = {}
    for line in material.lines:
        shot = line.shot
        picture = looks.get(shot.id, 0.2) if shot else 0.0
        parts = [
            (0.15, hooks.get(line.id, 0.0), "makes one curious"),
            (0.2, float(bool(asked & set(terms(line.text)))), "answers the request"),
            (0.1, float(_is_call(line)), "calls to action"),
            (0.2, audience.get(line.id, 0.0), "speaks to the audience of the brief"),
            (0.1, float(line.id in brand), "uses the brand's own words"),
            (0.35, content.get(line.id, 0.1), about.get(line.id, "carries the content")),
            (0.1, picture, "has a good picture"),
        ]
        said = [why for _, score, why in parts if score >= GOOD][:REASONS_MAX]
        worth = sum(weight * score for weight, score, _ in parts)
        worths[line.id] = (worth, ", ".join(said) or "continues the thought")
    return worths


def _reasons(answer: Mapping[str, JsonValue], name: str) -> dict[str, str]:
    """Return sentence id → the reason that an analyst gave for it."""
    return {
        str(row.get("sentence_id")): clip(str(row.get("reason")), 90) for row in rows(answer, name)
    }


def _is_call(line: Line) -> bool:
    """Answer whether a sentence near the end of its source asks the viewer to do something."""
    return line.place >= 0.6 and bool(set(tokens(line.text)[:2]) & CALLS)


def _opener(material: Material, thoughts: Sequence[Thought], frame: LengthFrame) -> Thought:
    """Return the thought to open with: the best hook that is short enough, and of worth."""
    hooks = scores(material.answer("hook_analyst"), "hooks", "sentence_id")
    if not hooks:
        hooks = {line.id: hook_score(line)[0] for each in thoughts for line in each.lines[:1]}
    longest = max(min(HOOK_SECONDS_MAX, frame.target / 2), 2.0)
    short = [each for each in thoughts if each.seconds <= longest] or list(thoughts)
    return max(short, key=lambda each: hooks.get(each.lines[0].id, 0.0) + each.worth / 2)


def _chosen(
    thoughts: Sequence[Thought], opener: Thought, frame: LengthFrame, cuts_min: int
) -> list[Thought]:
    """Return the opener and what follows it, in the order said."""
    taken = [opener]
    total = opener.seconds
    cap = max(4.0, frame.target / max(cuts_min - 1, 1))
    most = min(frame.target * TOO_MUCH, frame.longest)
    ranked = sorted((each for each in thoughts if each is not opener), key=lambda each: -each.worth)
    for candidates in (
        [each for each in ranked if each.seconds <= cap],
        [each for each in ranked if each.seconds > cap],
    ):
        for each in candidates:
            if total >= frame.target * ENOUGH or len(taken) >= CUTS_MAX:
                break
            if total + each.seconds <= most:
                taken.append(each)
                total += each.seconds
    place = {id(each): at for at, each in enumerate(thoughts)}
    return [opener, *sorted(taken[1:], key=lambda each: place[id(each)])]


def _cut(thought: Thought, *, opener: bool = False) -> JsonValue:
    what = f"opens the film: {thought.why}" if opener else thought.why
    reason = f"{what} (worth {thought.worth:.2f})"
    return {"sentence_ids": thought.ids, "shot_ids": [], "reason": clip(reason, 160)}


def _picture_story(material: Material, frame: LengthFrame) -> JsonValue:
    cuts = _shot_cuts(material, frame.target, CUTS_MAX, frame)
    if not cuts:
        first = next(iter(material.shot_of), "none")
        cuts = [{"sentence_ids": [], "shot_ids": [first], "reason": "the only shot there is"}]
    approach = f"Nothing usable is said: the {len(cuts)} best shots in their order."
    return {"approach": approach, "cuts": cuts, "alternates": []}


def _shot_cuts(
    material: Material, seconds: float, cuts_max: int, frame: LengthFrame
) -> list[JsonValue]:
    """Return the best shots for so many seconds, in the order of the footage."""
    picked: Mapping[str, float] = scores(material.answer("visual_analyst"), "picks", "shot_id")
    looks = [look_at(footage, shot) for footage, shot in material.shot_of.values()]
    usable = [look for look in looks if not look.fault]
    ranked = sorted(usable, key=lambda look: -picked.get(look.shot.id, look.score))
    each = shot_seconds(frame.target, int(material.figure("cuts_min", 4)))
    count = min(cuts_max, max(1, ceil(seconds / each)))
    names = {look.shot.id for look in ranked[:count]}
    return [
        {
            "sentence_ids": [],
            "shot_ids": [look.shot.id],
            "reason": f"one of the best shots (score {look.score:.2f}, {look.seconds:.1f} s)",
        }
        for look in usable
        if look.shot.id in names
    ]
