"""What changes the fingerprint of a function, and what does not."""

import textwrap

import pytest

from reprise.canonical import NotCanonical
from resources.memory_functions import MemoryFunctions

BASE = {
    "promo": """
        '''Pick moments.'''
        import math
        from helpers import score
        import tables

        LIMIT = 3
        RATES = {"a": 1}

        def outer(limit):
            def inner(inputs):
                return limit
            return inner

        caught = outer(5)

        def pick(inputs, most=LIMIT, *, least=1):
            '''Pick.'''
            # The best ones.
            return [score(1), most, least, RATES, tables.WEIGHTS["b"], math.pi]

        def unrelated(inputs):
            return 1
    """,
    "helpers": """
        from deeper import base

        def score(value):
            return base(value) + 1

        def other(value):
            return 0
    """,
    "deeper": """
        OFFSET = 2

        def base(value):
            return value + OFFSET
    """,
    "tables": """
        WEIGHTS = {"b": 2}
        UNUSED = {"c": 3}
    """,
}


def loader(**texts: str) -> MemoryFunctions:
    return MemoryFunctions({name: textwrap.dedent(text) for name, text in texts.items()})


def fingerprint(texts: dict[str, str], reference: str = "promo:pick") -> str:
    return loader(**texts).load(reference).fingerprint()


def edited(module: str, before: str, after: str) -> dict[str, str]:
    assert before in BASE[module]
    return {**BASE, module: BASE[module].replace(before, after)}


@pytest.mark.parametrize(
    ("module", "before", "after"),
    [
        ("promo", "[score(1), most", "[score(2), most"),
        ("promo", "LIMIT = 3", "LIMIT = 4"),
        ("promo", "least=1", "least=2"),
        ("promo", "most=LIMIT", "most=4"),
        ("promo", '{"a": 1}', '{"a": 2}'),
        ("promo", "import math", "import cmath as math"),
        ("promo", "from helpers import score", "from helpers import other as score"),
        ("helpers", "base(value) + 1", "base(value) + 2"),
        ("deeper", "value + OFFSET", "value - OFFSET"),
        ("deeper", "OFFSET = 2", "OFFSET = 3"),
        ("tables", '"b": 2', '"b": 3'),
    ],
)
def test_an_edit_of_what_a_function_uses_changes_its_fingerprint(
    module: str, before: str, after: str
) -> None:
    assert fingerprint(edited(module, before, after)) != fingerprint(BASE)


@pytest.mark.parametrize(
    ("module", "before", "after"),
    [
        ("promo", "# The best ones.", "# The very best ones."),
        ("promo", "'''Pick.'''", "'''Pick them.'''"),
        ("promo", "'''Pick moments.'''", ""),
        ("promo", "[score(1), most", "[  score( 1 ),\n                most"),
        ("promo", "def unrelated(inputs):\n            return 1", ""),
        ("promo", "import math", "\n\n        import math"),
        ("promo", "outer(5)", "outer(6)"),
        ("helpers", "return 0", "return 9"),
        ("tables", "UNUSED", "UNSEEN"),
        ("tables", '{"b": 2}', "{'b': 0x2}"),
    ],
)
def test_an_edit_of_anything_else_does_not(module: str, before: str, after: str) -> None:
    assert fingerprint(edited(module, before, after)) == fingerprint(BASE)


def test_values_that_a_closure_caught_count() -> None:
    before = fingerprint(BASE, "promo:caught")

    assert fingerprint(edited("promo", "outer(5)", "outer(6)"), "promo:caught") != before
    assert (
        fingerprint(edited("promo", "return limit\n", "return -limit\n"), "promo:caught") != before
    )
    assert fingerprint(edited("promo", "LIMIT = 3", "LIMIT = 4"), "promo:caught") == before


LITERALS = [
    "1",
    "True",
    "1.0",
    "'1'",
    "b'1'",
    "None",
    "'None'",
    "(1,)",
    "1j",
    "...",
    "frozenset({1})",
]


def test_literals_of_different_types_are_different_as_constants_and_in_closures() -> None:
    constant = "LIMIT = {}\ndef pick(inputs):\n    return LIMIT\n"
    # The value alone differs here; the texts of both are the same.
    caught = (
        "from values import VALUE\n"
        "def make(value):\n    def inner(inputs):\n        return value\n    return inner\n"
        "pick = make(VALUE)\n"
    )
    constants = {fingerprint({"promo": constant.format(text)}) for text in LITERALS}
    closures = {fingerprint({"promo": caught, "values": f"VALUE = {text}\n"}) for text in LITERALS}

    assert len(constants) == len(LITERALS)
    assert len(closures) == len(LITERALS)


def test_a_value_computed_while_loading_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import os\nLIMIT = int(os.environ['PICK_LIMIT'])\ndef pick(inputs):\n    return LIMIT\n"
    monkeypatch.setenv("PICK_LIMIT", "1")
    one = fingerprint({"promo": text})
    monkeypatch.setenv("PICK_LIMIT", "2")

    assert fingerprint({"promo": text}) != one


def test_decorators_count_their_arguments_and_what_they_wrap_too() -> None:
    text = """
        import functools

        def times(factor):
            def decorate(function):
                @functools.wraps(function)
                def inner(inputs):
                    return function(inputs) * factor
                return inner
            return decorate

        @times(2)
        def pick(inputs):
            return 1
    """
    before = fingerprint({"promo": text})

    for old, new in [("* factor", "+ factor"), ("times(2)", "times(3)"), ("return 1", "return 2")]:
        assert old in text
        assert fingerprint({"promo": text.replace(old, new)}) != before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return 1", "return 2"),
        ("weight = 1", "weight = 2"),
        ("return self.value", "return -self.value"),
        ("size: int = 3", "size: int = 4"),
    ],
)
def test_a_class_of_the_users_own_counts_with_its_methods_and_bases(old: str, new: str) -> None:
    text = """
        from dataclasses import dataclass

        class Base:
            weight = 1
            def value_of(self):
                return 1

        @dataclass
        class Clip(Base):
            value: int = 0
            size: int = 3
            def score(self):
                return self.value

        def make():
            return Clip()

        def pick(inputs):
            return make().score()
    """
    assert old in text
    assert fingerprint({"promo": text.replace(old, new)}) != fingerprint({"promo": text})


@pytest.mark.parametrize(
    "text",
    [
        "rank = lambda value: {}\ndef pick(inputs):\n    return rank(1)\n",
        "def pick(inputs):\n    def rank(value):\n        return {}\n    return rank(1)\n",
        "RULES = {{'a': lambda value: {}}}\ndef pick(inputs):\n    return RULES['a'](1)\n",
        "def rank(value):\n    return {}\nRULES = [rank]\n"
        "def pick(inputs):\n    return [rule(1) for rule in RULES]\n",
        "RULES = {{}}\ndef rule(function):\n    RULES['a'] = function\n    return function\n"
        "@rule\ndef first(value):\n    return {}\ndef pick(inputs):\n    return RULES['a'](1)\n",
        "import functools\ndef rank(value, by):\n    return {}\n"
        "best = functools.partial(rank, by=1)\ndef pick(inputs):\n    return best(1)\n",
        "import functools\n@functools.lru_cache\ndef rank(value):\n    return {}\n"
        "def pick(inputs):\n    return rank(1)\n",
        "async def rank(value):\n    return {}\nimport asyncio\n"
        "def pick(inputs):\n    return asyncio.run(rank(1))\n",
        "TABLE = {{}}\nTABLE['a'] = {}\ndef pick(inputs):\n    return TABLE['a']\n",
        "TABLE = {{}}\nTABLE.update(a={})\ndef pick(inputs):\n    return TABLE['a']\n",
        "if True:\n    def rank(value):\n        return {}\n"
        "def pick(inputs):\n    return rank(1)\n",
        "try:\n    import absent_module\nexcept ImportError:\n    RATE = {}\n"
        "def pick(inputs):\n    return RATE\n",
        "import enum\nclass Kind(enum.Enum):\n    A = {}\ndef pick(inputs, kind=Kind.A):\n"
        "    return kind.value\n",
        "import re\nWORDS = re.compile('a' * {})\ndef pick(inputs):\n    return WORDS.pattern\n",
        "def pick(inputs):\n    return f'{{len(inputs.files):>{}}}'\n",
    ],
)
def test_code_counts_however_it_is_reached(text: str) -> None:
    assert fingerprint({"promo": text.format(1)}) != fingerprint({"promo": text.format(2)})


def test_helpers_that_call_each_other_end() -> None:
    text = (
        "def odd(n):\n    return n and even(n - 1)\n"
        "def even(n):\n    return {} if n == 0 else odd(n - 1)\n"
        "def pick(inputs):\n    return even(4)\n"
    )
    assert fingerprint({"promo": text.format(1)}) != fingerprint({"promo": text.format(2)})


@pytest.mark.parametrize(
    "importing",
    [
        "from kit import rank",
        "from kit import *",
        "import kit\nrank = kit.rank",
        "import kit as k\ndef rank(value):\n    return k.rank(value)",
        "def rank(value):\n    from kit import rank as inner\n    return inner(value)",
        "def rank(value):\n    import kit\n    return kit.rank(value)",
        "def rank(value):\n    import kit\n    return getattr(kit, 'rank')(value)",
        "import kit.parts\ndef rank(value):\n    return kit.parts.rank(value)",
        "from kit import parts\ndef rank(value):\n    return parts.rank(value)",
        "from kit.parts import rank",
    ],
)
def test_a_helper_of_another_module_counts_however_it_is_imported(importing: str) -> None:
    def texts(value: int) -> dict[str, str]:
        return {
            "promo": f"{importing}\ndef pick(inputs):\n    return rank(1)\n",
            "kit/__init__": "from .parts import rank\n__all__ = ['rank']\n",
            "kit.parts": "from .deep import base\ndef rank(value):\n    return base(value)\n",
            "kit.deep": f"def base(value):\n    return {value}\n",
        }

    assert fingerprint(texts(1)) != fingerprint(texts(2))
    assert loader(**texts(7)).load("promo:pick").call(None) == 7  # type: ignore[arg-type]  # Unused.


def test_modules_that_import_each_other_end() -> None:
    texts = {
        "promo": "import other\ndef pick(inputs):\n    return other.rank(1)\n"
        "def base():\n    return 1\n",
        "other": "import promo\ndef rank(value):\n    return promo.base()\n",
    }
    changed = {**texts, "promo": texts["promo"].replace("return 1\n", "return 2\n")}

    assert fingerprint(texts) != fingerprint(changed)


def test_a_local_name_hides_a_global_of_the_same_name() -> None:
    text = (
        "def title(value):\n    return {}\n"
        "def pick(inputs):\n    title = 1\n    return [title for title in (title, 2)]\n"
    )
    assert fingerprint({"promo": text.format(1)}) == fingerprint({"promo": text.format(2)})


def test_mutable_state_does_not_count() -> None:
    text = (
        "SEEN = []\nCOUNT = 0\ndef pick(inputs):\n    global COUNT\n    COUNT += 1\n"
        "    SEEN.append(COUNT)\n    return COUNT\n"
    )
    functions = loader(promo=text)
    before = functions.load("promo:pick").fingerprint()
    functions.load("promo:pick").call(None)  # type: ignore[arg-type]  # Unused.

    assert functions.load("promo:pick").fingerprint() == before
    assert fingerprint({"promo": text}) == before


def test_what_runs_only_as_a_program_does_not_count() -> None:
    text = "def pick(inputs):\n    return 1\nif __name__ == '__main__':\n    print({})\n"
    assert fingerprint({"promo": text.format(1)}) == fingerprint({"promo": text.format(2)})


def test_a_module_imported_while_running_counts_the_same_before_and_after() -> None:
    texts = {
        "promo": "def pick(inputs):\n    from late import VALUE\n    return VALUE\n",
        "late": "VALUE = 1\n",
        "second": "from promo import pick\n",
    }
    functions = loader(**texts)
    before = functions.load("promo:pick").fingerprint()
    functions.load("promo:pick").call(None)  # type: ignore[arg-type]  # Unused.

    assert functions.load("second:pick").fingerprint() == fingerprint(texts, "second:pick")
    assert fingerprint(texts) == before
    assert fingerprint({**texts, "late": "VALUE = 2\n"}) != before


@pytest.mark.parametrize(
    "text",
    [
        "from json import dumps as pick\n",
        "exec('def pick(inputs): return 1')\n",
        "pick = eval('lambda inputs: 1')\n",
        "import functools\npick = functools.partial(eval('lambda n, inputs: 1'), 1)\n",
    ],
)
def test_a_function_without_source_of_its_own_has_no_fingerprint(text: str) -> None:
    function = loader(promo=text).load("promo:pick")

    with pytest.raises(NotCanonical, match=r"the source of promo:.* cannot be had"):
        function.fingerprint()


def test_a_callable_of_an_installed_package_has_no_fingerprint() -> None:
    function = MemoryFunctions().load("yaml:safe_load")

    with pytest.raises(NotCanonical, match="the source of yaml:safe_load cannot be had"):
        function.fingerprint()


def test_the_fingerprint_is_pinned() -> None:
    """It must not change by accident: every pure function would miss; see FINGERPRINT_REVISION."""
    assert fingerprint(BASE) == "6cd2e36ea66d5f9d82dcc815f39eac60bf7e3a1ac5ae69cce3b4257c7a74405a"


@pytest.mark.parametrize(
    "call",
    [
        "globals()['helper']()",
        "eval('helper()')",
        "vars()['helper']()",
        "__import__('promo').helper()",
        "importlib.import_module('promo').helper()",
    ],
)
def test_code_that_is_reached_by_a_text_has_no_fingerprint(call: str) -> None:
    text = f"import importlib\ndef helper(): return 1\ndef pick(inputs): return {call}\n"

    with pytest.raises(NotCanonical, match="reaches code by a text"):
        loader(promo=text).load("promo:pick").fingerprint()
