"""The digest of one output: its rules by example, and what holds of any input."""

import json
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reprise.context.digest import digest_text, rungs
from reprise.context.digest_shorten import is_protected, sampled_indexes
from reprise.model.settings import ContextBudgetSettings, DigestStrategy

DEFAULTS = ContextBudgetSettings()


def knobs(**fields: object) -> ContextBudgetSettings:
    return ContextBudgetSettings.model_validate(fields)


def digest(value: object, **fields: object) -> object:
    return json.loads(digest_text(json.dumps(value, ensure_ascii=False), knobs(**fields)))


# ---------------------------------------------------------------------------- the rules of B3


def test_a_long_text_keeps_its_head_and_says_how_much_is_left_out() -> None:
    assert digest({"a": "x" * 1000, "b": "y" * 600}) == {
        "a": "x" * 600 + "…(+400 chars)",
        "b": "y" * 600,
    }


def test_a_text_that_its_marker_would_not_shorten_stays_whole() -> None:
    # 600 and the marker's 12 would be as long; one more is cut.
    assert digest(["x" * 612, "x" * 613]) == ["x" * 612, "x" * 600 + "…(+13 chars)"]


def test_a_long_list_keeps_its_first_items_and_says_how_many_are_left_out() -> None:
    assert digest({"n": list(range(100))}) == {
        "n": [*range(25), "…(+75 more items omitted by context budget)"]
    }


def test_what_is_nested_deeper_is_left_out() -> None:
    value = {"a": {"b": {"c": [1, 2, 3] * 20, "d": {"e": "f" * 99}, "g": [], "h": 5}}}
    assert digest(value, digest_max_depth=3) == {
        "a": {
            "b": {
                "c": "…(list with 60 items omitted by context budget)",
                "d": "…(object with 1 keys omitted by context budget)",
                "g": [],
                "h": 5,
            }
        }
    }


def test_blanks_go_first_and_keys_keep_their_order() -> None:
    assert digest_text('{\n  "b": 1,\n  "a": [1, 2]\n}', DEFAULTS) == '{"b":1,"a":[1,2]}'


def test_a_digest_that_would_be_longer_is_the_text() -> None:
    text = json.dumps(list(range(26)), separators=(",", ":"))
    assert digest_text(text, DEFAULTS) == text


def test_other_text_is_cut_in_the_middle_with_the_exact_number() -> None:
    made = digest_text("a" * 9_000 + "b" * 9_000, DEFAULTS)

    head, marker, tail = made.split("\n")
    assert (set(head), set(tail)) == ({"a"}, {"b"})
    assert marker == f"…(+{18_000 - len(head) - len(tail)} chars)"
    assert 11_900 < len(made) <= 12_000


def test_what_does_not_fit_is_shortened_further_until_it_does() -> None:
    rows = [{"id": n, "text": "word " * 200, "words": ["w"] * 500} for n in range(200)]
    made = digest_text(json.dumps({"rows": rows, "late": "here"}), DEFAULTS)

    assert 4_000 < len(made) <= 12_000
    assert json.loads(made)["late"] == "here"


def test_many_keys_end_as_an_outline_that_fits() -> None:
    made = json.loads(digest_text(json.dumps({f"k{n}": n for n in range(100_000)}), DEFAULTS))

    assert made["k0"] == 0
    assert made["…"] == "…(+99488 more keys omitted by context budget)"


@pytest.mark.parametrize(
    "value",
    [
        {"k" * 50_000 + str(n): "v" * 50_000 for n in range(40)},
        ["v" * 5_000] * 5_000,
        "v" * 1_000_000,
        [[[[n] * 9] * 9] * 9 for n in range(9)],
    ],
    ids=["keys", "texts", "text", "lists"],
)
def test_the_last_rung_always_fits(value: object) -> None:
    made = digest_text(json.dumps(value), knobs(max_digested_step_chars=100))

    assert len(made) <= 100
    assert type(json.loads(made)) is type(value)


# ------------------------------------------------------------------------------ odd input (B9)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"n": 118059162071741130342400}', '{"n":118059162071741130342400}'),
        ("118059162071741130342400", "118059162071741130342400"),
        ('{"n":  -9223372036854775809, "f": 1e30}', '{"n":-9223372036854775809,"f":1e+30}'),
        ('{"n": 18446744073709551615}', '{"n":18446744073709551615}'),
        ('{"n": 1e400, "m": -1.5E+999}', '{"n":1e400,"m":-1.5E+999}'),
        ('{ "n": NaN,  "m":  [-Infinity] }', '{"n":"NaN","m":["-Infinity"]}'),
        ('{"n": 1.10, "s": "NaN 1e400"}', '{"n":1.1,"s":"NaN 1e400"}'),
        ('{"a": 1, "a": 2}', '{"a":2}'),
        ('{"a": "\\ud83d x"}', '{"a":"� x"}'),
        ('{"a": "\\ud83d\\ude00", "b": "\\\\ud83d"}', '{"a":"😀","b":"\\\\ud83d"}'),
        ('{"a": "\ud83d" }', '{"a":"�"}'),
        ('{"\\u0000n5": "\\u0000", "x": NaN}', '{"\\u0000n5":"\\u0000","x":"NaN"}'),
        ('\ufeff{"a": 1}', '{"a":1}'),
        ("not \ud83d json", "not � json"),
        ("", ""),
        ('{"a": ', '{"a": '),
        ("[1]\n[2]", "[1]\n[2]"),
        ("00000000000000000000000", "00000000000000000000000"),
    ],
)
def test_odd_texts_are_read_for_what_they_say(text: str, expected: str) -> None:
    assert digest_text(text, DEFAULTS) == expected


def test_a_number_of_thousands_of_digits_is_shown_as_a_text() -> None:
    assert digest_text("[" + "7" * 5_000 + "]", DEFAULTS) == f'["{"7" * 600}…(+4400 chars)"]'


@pytest.mark.parametrize("depth", [255, 900, 5_000, 100_000])
def test_nesting_may_be_thousands_deep(depth: int) -> None:
    made = digest_text("[" * depth + "]" * depth, DEFAULTS)
    assert len(made) <= 12_000


def test_json_in_a_fence_is_shortened_where_it_stands() -> None:
    rows = json.dumps({"rows": list(range(100))}, indent=1)
    made = digest_text(f"Here it is:\n```json\n{rows}\n```\nDone.", DEFAULTS)

    assert made.startswith('Here it is:\n```json\n{"rows":[0,1,')
    assert made.endswith(',24,"…(+75 more items omitted by context budget)"]}\n```\nDone.')


def test_a_cut_splits_no_character() -> None:
    family = "👩\u200d👩\u200d👧"
    for text in (family * 300, "e\u0301" * 700, "🇩🇪" * 500, "👍🏽" * 700, "❤\ufe0f" * 700):
        made = digest([text], digest_max_string_chars=601)
        assert isinstance(made, list)
        unit = text[: 5 if text.startswith(family) else 2]
        assert made[0].split("…")[0] == unit * (len(made[0].split("…")[0]) // len(unit))


def test_fifty_megabytes_in_one_text() -> None:
    assert len(digest_text('{"a": "' + "x" * 50_000_000 + '"}', DEFAULTS)) == 626
    assert len(digest_text("x" * 50_000_000, DEFAULTS)) <= 12_000
    assert len(digest_text('\\"' * 5_000_000, DEFAULTS)) <= 12_000


# ---------------------------------------------------------------------------------- sampled


def test_sampled_keeps_first_last_and_evenly_spaced_items() -> None:
    made = digest(list(range(1000)), digest_strategy="sampled", digest_max_array_items=12)
    assert made == [
        *(0, 1, 2, 3, 125, 250, 375, 500, 625, 750, 998, 999),
        "…(+988 more items omitted by context budget)",
    ]


def test_sampled_keeps_head_and_tail_of_a_text() -> None:
    made = digest({"a": "h" * 900 + "t" * 900}, digest_strategy="sampled")
    assert made == {"a": "h" * 450 + "…(+1200 chars)" + "t" * 150}


def test_sampled_keeps_ids_and_keys_whole_where_other_texts_are_cut() -> None:
    long = "x" * 200
    rows = [{"storage_key": long, "text": long} for _ in range(500)]
    made = digest(rows, digest_strategy="sampled", digest_max_string_chars=100)

    assert isinstance(made, list)
    assert made[0]["storage_key"] == long
    assert len(made[0]["text"]) < 200


@pytest.mark.parametrize(
    ("key", "kept"),
    [
        *((key, True) for key in ("id", "scene_id", "sceneId", "OutputStorageKey", "verdict")),
        *((key, True) for key in ("ERROR", "asset_URL", "review.score")),
        *((key, False) for key in ("valid", "keyframes", "summary", "", "…", "id_text")),
    ],
)
def test_protected_keys_are_known_by_their_last_word(key: str, *, kept: bool) -> None:
    assert is_protected(key) is kept


@given(st.integers(1, 2_000), st.data())
def test_a_larger_sample_adds_to_a_smaller_one(count: int, data: st.DataObject) -> None:
    small = data.draw(st.integers(0, count))
    large = data.draw(st.integers(small, count))

    assert set(sampled_indexes(count, small)) <= set(sampled_indexes(count, large))
    assert len(sampled_indexes(count, large)) == large
    assert set(sampled_indexes(count, large)) <= set(range(count))


# ------------------------------------------------------------------- what holds of any input

hostile_texts = st.text(max_size=30) | st.builds(
    lambda unit, times: unit * times,
    st.sampled_from(
        ["ab ", "é", "e\u0301", "👩\u200d👧", "🇩🇪", '"\\', "\n", "\0", "\ud83d", "…(+7 chars)", "…"]
    ),
    st.integers(0, 400),
)
hostile_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats()
    | st.just(10**60)
    | hostile_texts
    | st.sampled_from(["…(+3 more items omitted by context budget)", "\0n12", "\0t"]),
    lambda inner: (
        st.lists(inner, max_size=8)
        | st.builds(lambda item, times: [item] * times, inner, st.integers(0, 60))
        | st.dictionaries(hostile_texts | st.sampled_from(["id", "…", "key"]), inner, max_size=6)
    ),
    max_leaves=25,
)


@st.composite
def hostile_json(draw: st.DrawFn) -> str:
    value = draw(hostile_values)
    text = json.dumps(
        value, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1]))
    )
    fill = draw(st.sampled_from(["", "", "", "Here:\n```json\n", "[sic] ", "\ufeff", "x" * 900]))
    end = draw(st.sampled_from(["", "", "\n```", " {}", "}", "\n" + "y" * 900]))
    return fill + text + end


any_text = (
    hostile_json()
    | hostile_texts
    | st.text(st.sampled_from('[]{}",:\\ue1d8-.0\n…('), max_size=60)
    | st.builds(lambda a, b: a + b, hostile_json(), hostile_texts)
)
any_settings = st.builds(
    ContextBudgetSettings,
    max_digested_step_chars=st.integers(100, 1_500),
    digest_max_string_chars=st.sampled_from([1, 7, 50, 600]),
    digest_max_array_items=st.sampled_from([1, 2, 5, 25]),
    digest_max_depth=st.sampled_from([1, 2, 12, 199]),
    digest_strategy=st.sampled_from(DigestStrategy),
)


@settings(max_examples=150, deadline=None)
@given(any_text, any_settings)
@example('{"a": "' + "…(+5 chars)" + "x" * 700 + '"}', DEFAULTS)
def test_a_digest_fits_is_no_longer_than_its_text_and_is_its_own_digest(
    text: str, knob: ContextBudgetSettings
) -> None:
    made = digest_text(text, knob)

    assert len(made) <= min(len(text), knob.max_digested_step_chars)
    assert digest_text(made, knob) == made
    made.encode()


@settings(max_examples=100, deadline=None)
@given(hostile_values, any_settings)
def test_json_stays_json(value: object, knob: ContextBudgetSettings) -> None:
    text = json.dumps(value)
    made = digest_text(text, knob)

    if made != text:
        assert type(json.loads(made, parse_constant=_refused)) in (type(value), str)


def _refused(word: str) -> object:
    message = f"{word} is no JSON"
    raise AssertionError(message)


@settings(max_examples=100, deadline=None)
@given(any_text, any_settings, st.integers(0, 2_000))
def test_a_larger_cap_never_shows_less(text: str, knob: ContextBudgetSettings, more: int) -> None:
    larger = knob.model_copy(
        update={"max_digested_step_chars": knob.max_digested_step_chars + more}
    )
    assert len(digest_text(text, larger)) >= len(digest_text(text, knob))


def _facts(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _facts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _facts(item)
    else:
        yield value


@given(st.lists(st.fixed_dictionaries({"id": st.uuids().map(str), "n": st.integers(0, 99)})))
@settings(max_examples=50, deadline=None)
def test_a_larger_cap_shows_every_item_that_a_smaller_one_shows(rows: list[object]) -> None:
    text = json.dumps(rows)
    for strategy in DigestStrategy:
        shown: set[object] = set()
        for cap in (100, 200, 400, 800, 1_600):
            made = digest_text(text, knobs(max_digested_step_chars=cap, digest_strategy=strategy))
            now = {fact for fact in _facts(json.loads(made)) if "…" not in str(fact)}
            assert shown <= now
            shown = now


@given(any_settings)
def test_each_rung_shows_less_than_the_one_before(knob: ContextBudgetSettings) -> None:
    ladder = list(rungs(knob))
    for above, below in pairwise(ladder):
        assert below.string_chars <= above.string_chars
        assert below.items <= above.items
        assert below.depth <= above.depth
        assert above.keys is None or (below.keys is not None and below.keys <= above.keys)


FAMILY = "👩\u200d👩\u200d👧"


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (
            "plain",
            '{"view":"analysis","fps":29.97,"wide":1180591620717411303424,"scenes":['
            '{"id":"s0","start":0.0,"text":"wörd wörd …(+40 chars)"},'
            '{"id":"s1","start":3.37,"text":"wörd wörd …(+40 chars)"},'
            '{"id":"s2","start":6.74,"text":"wörd wörd …(+40 chars)"},'
            '"…(+57 more items omitted by context budget)"],'
            f'"note":"{FAMILY}{FAMILY}…(+30 chars)"}}',
        ),
        (
            "sampled",
            '{"view":"analysis","fps":29.97,"wide":1180591620717411303424,"scenes":['
            '{"id":"s0","start":0.0,"text":"wörd wör…(+40 chars)d "},'
            '{"id":"s30","start":101.1,"text":"wörd wör…(+40 chars)d "},'
            '{"id":"s59","start":198.83,"text":"wörd wör…(+40 chars)d "},'
            '"…(+57 more items omitted by context budget)"],'
            f'"note":"{FAMILY}…(+35 chars)"}}',
        ),
    ],
)
def test_the_digest_is_pinned(strategy: str, expected: str) -> None:
    """Golden, by hand: the same bytes on every platform and Python version (B8)."""
    value = {
        "view": "analysis",
        "fps": 29.97,
        "wide": 2**70,
        "scenes": [
            {"id": f"s{n}", "start": round(n * 3.37, 2), "text": "wörd " * 10} for n in range(60)
        ],
        "note": FAMILY * 8,
    }
    knob = knobs(digest_strategy=strategy, digest_max_string_chars=10, digest_max_array_items=3)
    for indent in (None, 2):
        text = json.dumps(value, ensure_ascii=indent is None, indent=indent)
        assert digest_text(text, knob) == expected


def test_numbers_are_laid_out_as_python_does_it() -> None:
    text = json.dumps([1.1, 1e16, 1e-7, -1e-5, 0.1 + 0.2, -0.0, -2.5, 1e15], indent=1)
    expected = "[1.1,1e+16,1e-07,-1e-05,0.30000000000000004,-0.0,-2.5,1000000000000000.0]"
    assert digest_text(text, DEFAULTS) == expected
