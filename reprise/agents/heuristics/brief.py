r"""Briefs and brand notes in Markdown, read by their headings and labels.

A field is found under a heading (`## Audience`), behind a label (`Audience: …`, also in bold or as
a bullet) or in a table, as the head of a column or of a row. A list is bullets, cells, or one line
parted by commas. Whoever writes prose without either gives only a title and the words of the text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from reprise.agents.heuristics.words import clip
from reprise.media.film_length import seconds_in_text
from reprise.model.conversation import ProjectDocument

HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*\s*$")
UNDERLINE = re.compile(r"^(=+|-{3,})\s*$")
BULLET = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+(.*)$")
LABEL = re.compile(r"^\s*(?:\*\*|__)?([^:|*_]{2,48}?)(?:\*\*|__)?\s*:\s*(?:\*\*|__)?\s*(.*)$")
RULER = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$")
MARKS = re.compile(r"[*_`]+")
QUOTED = re.compile(r"[\"“”„«]([^\"“”„«»]{1,60})[\"“”»]")
NOT_BRIEFS = re.compile(r"licen[cs]e|copying|notice|credits|changelog|truth", re.IGNORECASE)
BRAND_NAME = re.compile(r"brand|style|tone|voice", re.IGNORECASE)
BRIEF_NAME = re.compile(r"brief|auftrag|assignment", re.IGNORECASE)
BRIEF_TITLE = re.compile(r"^\s*(?:(?:creative|promo|video)\s+)*brief\b\s*[:–—-]*\s*", re.IGNORECASE)
BRAND_TITLE = re.compile(
    r"\s*[:–—-]*\s*\bbrand(?:\s+(?:notes|guide|guidelines|book))?\b\s*[:–—-]*\s*", re.I
)

AUDIENCE = (
    r"audience|viewers?|target (?:group|audience)|for whom|who (?:is )?(?:it|this) (?:is )?for|who"
)
GOAL = r"goals?|purpose|objectives?|aim|call to action|action|what (?:it|the promo) should do|why"
LENGTH = r"length|duration|running time|runtime|how long"
TONE = r"tone(?: of voice)?|voice|mood|style"
TITLE = r"(?:working )?title(?: (?:on|of|for) the)?(?: card| film| promo)?|headline"
MESSAGES = r"(?:key |main )?messages?|key points?|what (?:must|should) be said"
TAGLINE = r"tag ?line|claim|slogan|strap ?line"
USE = (
    r"(?:words?|phrases?|terms?|wording) (?:to use|we use|we like)|use|say|do say|"
    r"preferred(?: words| terms)?"
)
AVOID = (
    r"(?:words?|phrases?|terms?|wording) (?:to avoid|we avoid|not to use|we never use)|avoid|"
    r"never say|(?:do not|don['’]t) (?:say|use)|forbidden(?: words)?|banned(?: words)?|taboo"
)


@dataclass
class Field:
    """What stands under a heading or behind a label."""

    name: str
    """Heading or label, in lower case, without marks."""
    lines: list[str] = field(default_factory=list)
    """Paragraphs and bullets, without marks."""


@dataclass(frozen=True)
class Notes:
    """The documents of a kind, read."""

    documents: tuple[ProjectDocument, ...]
    """As they are."""
    fields: tuple[Field, ...]
    """Their fields in order."""
    titles: tuple[str, ...]
    """Their top headings."""

    @property
    def text(self) -> str:
        """All their text."""
        return "\n".join(document.text for document in self.documents)

    @property
    def words(self) -> str:
        """What they say, without headings and labels."""
        return "\n".join(line for each in self.fields for line in each.lines)

    def value(self, names: str, chars_max: int) -> str:
        """Return the first text of a field of one of the names; empty when there is none."""
        lines = self.lines(names)
        return clip(" ".join(lines), chars_max) if lines else ""

    def lines(self, names: str) -> list[str]:
        """Return the lines of all fields of one of the names."""
        wanted = re.compile(rf"(?:the |our )?(?:{names})", re.IGNORECASE)
        return [line for each in self.fields if wanted.fullmatch(each.name) for line in each.lines]

    def items(self, names: str) -> list[str]:
        """Return the short items of the lists under one of the names, each once."""
        return list(dict.fromkeys(item for line in self.lines(names) for item in _items(line)))

    def seconds(self) -> float | None:
        """Return the wanted length: a length field's, else the first one in the text."""
        named = seconds_in_text(" ".join(self.lines(LENGTH)))
        return named if named is not None else seconds_in_text(self.text)


def brief_of(documents: Sequence[ProjectDocument]) -> Notes:
    """Return the brief: documents named so, else all that are neither brand notes nor licences."""
    candidates = [each for each in documents if not NOT_BRIEFS.search(each.name)]
    named = [each for each in candidates if BRIEF_NAME.search(each.name)]
    return _read(named or [each for each in candidates if not BRAND_NAME.search(each.name)])


def brand_of(documents: Sequence[ProjectDocument]) -> Notes:
    """Return the brand notes: documents named so."""
    return _read(
        [
            each
            for each in documents
            if BRAND_NAME.search(each.name)
            and not BRIEF_NAME.search(each.name)
            and not NOT_BRIEFS.search(each.name)
        ]
    )


def brief_title(brief: Notes, brand: Notes) -> str:
    """Return the title that the documents give: a field's, else a top heading that says one."""
    for notes in (brief, brand):
        named = notes.value(TITLE, 80)
        if named:
            quoted = QUOTED.search(named)
            return clip(quoted.group(1) if quoted else named.rstrip("."), 80)
    for heading in brief.titles:
        title = BRIEF_TITLE.sub("", heading).strip()
        if title:
            return clip(title, 80)
    for heading in brand.titles:
        title = BRAND_TITLE.sub(" ", heading).strip()
        if title:
            return clip(title, 80)
    return ""


def _read(documents: Sequence[ProjectDocument]) -> Notes:
    fields: list[Field] = []
    titles: list[str] = []
    for document in documents:
        _read_document(document.text, fields, titles)
    return Notes(tuple(documents), tuple(fields), tuple(titles))


def _read_document(text: str, fields: list[Field], titles: list[str]) -> None:
    current = Field("")
    fields.append(current)
    lines = text.replace("\r\n", "\n").split("\n")
    heads: list[str] = []
    for at, line in enumerate(lines):
        below = lines[at + 1] if at + 1 < len(lines) else ""
        if "|" in line and (heads or RULER.match(below)):
            heads = _read_row(line, heads, current, fields)
            continue
        heads = []
        heading = HEADING.match(line)
        if heading or (line.strip() and UNDERLINE.match(below)):
            name = _plain(heading.group(2) if heading else line)
            if heading is None or len(heading.group(1)) == 1:
                titles.append(name)
            current = Field(name.lower())
            fields.append(current)
        elif line.strip() and not UNDERLINE.match(line):
            current = _read_line(line, current, fields)


def _read_line(line: str, current: Field, fields: list[Field]) -> Field:
    """Take over a line of text, and return the field to which the next one belongs."""
    bullet = BULLET.match(line)
    body = bullet.group(1) if bullet else line
    labelled = LABEL.match(body)
    if labelled and len(labelled.group(1).split()) <= 6:
        named = Field(_plain(labelled.group(1)).lower(), _some(labelled.group(2)))
        fields.append(named)
        if not named.lines:
            # `Avoid:` alone on its line is the head of the list that follows.
            current = named
        if not bullet:
            return current
    current.lines += _some(body)
    return current


def _read_row(line: str, heads: list[str], current: Field, fields: list[Field]) -> list[str]:
    """Take over a row of a table: under its column's head, and behind its first cell."""
    cells = [_plain(cell) for cell in line.strip().strip("|").split("|")]
    if not heads:
        return [cell.lower() for cell in cells]
    if RULER.match(line):
        return heads
    for head, cell in zip(heads, cells, strict=False):
        fields.append(Field(head, _some(cell)))
    if len(cells) > 1:
        fields.append(Field(cells[0].lower(), _some(cells[1])))
    current.lines += _some(" – ".join(cells))
    return heads


def _some(text: str) -> list[str]:
    plain = _plain(text)
    return [plain] if plain else []


def _plain(text: str) -> str:
    return " ".join(MARKS.sub("", text).split())


def _items(line: str) -> list[str]:
    """Return the items of a line: what is in quotes, else what commas part, if it is short."""
    quoted = QUOTED.findall(line)
    if quoted:
        return [item.strip(" .,;").lower() for item in quoted if item.strip(" .,;")]
    head = re.split(r"\s+[–—]\s+|\s+-\s+|:\s|\(", line)[0]
    parts = [part.strip(" .;") for part in re.split(r"[,;/]|\bor\b", head)]
    return [part.lower() for part in parts if part and len(part.split()) <= 4]
