"""Syntax errors of a file, and those that a change brought."""

import itertools

import pytest

from reprise.tools.syntax import FAULTS_MAX, SyntaxFault, new_syntax_errors, syntax_errors
from reprise.tools.syntax_tree import PARSE_SECONDS_MAX, SyntaxRefusal, syntax_tree


@pytest.mark.parametrize(
    ("source", "line", "column", "text"),
    [
        ("foo(1;\n", 1, 6, "missing `)`"),
        ("const a = ;\nb();\n", 1, 11, "unexpected `;`"),
        ("a\n}\n", 2, 1, "unexpected `}`"),
        ("const A = () => {\n  b();\n", 1, 17, "`{` is never closed"),
        ("const A = () => {\n  return <div>;\n};\n", 2, 10, "`<div>` is never closed"),
        ("export const A = () => {\n  b()\nexport const C = 1;\n", 1, 24, "`{` is never closed"),
        ('const é😀 = "é" + (1;\n', 1, 20, "missing `)`"),
        ("\ufefffoo(1;\n", 1, 6, "missing `)`"),
    ],
)
def test_a_fault_tells_what_and_where(source: str, line: int, column: int, text: str) -> None:
    assert syntax_errors(source.encode(), "a.tsx") == (SyntaxFault(line, column, text),)


def test_a_file_without_faults_has_none() -> None:
    assert syntax_errors(b"const a = <b>c</b>;\n", "a.tsx") == ()
    assert syntax_errors(b"", "a.ts") == ()


def test_a_file_that_cannot_be_parsed_has_no_answer() -> None:
    assert syntax_errors(b"{", "a.json") is None
    assert syntax_errors(b"\xff", "a.ts") is None


def test_faults_are_few_and_short() -> None:
    faults = syntax_errors(b"const = " + b"@" * 5_000 + b"\n" + b"foo(1;\n" * 100, "a.ts")
    assert faults is not None
    assert 0 < len(faults) <= FAULTS_MAX
    assert all(len(fault.text) < 80 for fault in faults)


def test_a_chain_of_broken_statements_has_faults() -> None:
    faults = syntax_errors(b"iffunction >" * 20_000, "a.ts")
    assert faults is not None
    assert (faults[0].line, faults[0].column) == (1, 1)


def test_only_a_file_that_had_no_fault_gets_new_ones() -> None:
    good, bad, worse = b"a(1);\n", b"a(1;\n", b"a(1;\n}\n"
    assert new_syntax_errors(good, bad, "a.ts") == (SyntaxFault(1, 4, "missing `)`"),)
    assert new_syntax_errors(b"", bad, "a.ts") != ()
    assert new_syntax_errors(bad, worse, "a.ts") == ()
    assert new_syntax_errors(bad, good, "a.ts") == ()
    assert new_syntax_errors(good, good, "a.ts") == ()
    assert new_syntax_errors(good, bad, "a.md") == ()


def test_parsing_that_takes_too_long_is_refused() -> None:
    times = itertools.count(0.0, PARSE_SECONDS_MAX)
    found = syntax_tree(b"const a = 1;\n" * 10_000, "a.ts", clock=lambda: next(times))
    assert isinstance(found, SyntaxRefusal)
    assert found.code == "too_slow"


def test_a_file_that_falls_into_a_million_pieces_is_refused() -> None:
    found = syntax_tree(b"{" + b":" * 500_000, "a.ts")
    assert isinstance(found, SyntaxRefusal)
    assert found.code == "too_slow"
