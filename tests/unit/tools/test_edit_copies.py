"""Texts that models copy with something in them that the file has not: named, never applied."""

import pytest

from reprise.tools.text_edit import EditRefusal, TextEdit, edit_bytes

SOURCE = (
    'function f() {\n  const x = "Hello\\nworld";\n  if (a < b && c) {\n    return x;\n  }\n}\n'
)
LINES = "  if (a < b && c) {\n    return x;"


@pytest.mark.parametrize(
    ("file", "old", "difference", "line", "text"),
    [
        (SOURCE, "     3→  if (a < b && c) {\n     4→    return x;", "line_numbers", 3, LINES),
        (SOURCE, "     3\t  if (a < b && c) {\n     4\t    return x;", "line_numbers", 3, LINES),
        (SOURCE, "3:   if (a < b && c) {\n4:     return x;", "line_numbers", 3, LINES),
        (SOURCE, "3|  if (a < b && c) {\n4|    return x;", "line_numbers", 3, LINES),
        (SOURCE, '"Hello\nworld"', "unescaped", 2, '"Hello\\nworld"'),
        ('s = "a\\tb";\n', 's = "a\tb";', "unescaped", 1, 's = "a\\tb";'),
        ("r = /\\\\d+/;\n", "r = /\\d+/;", "unescaped", 1, "r = /\\\\d+/;"),
        ('x = "\\u00e9";\n', 'x = "é";', "unescaped", 1, 'x = "\\u00e9";'),
        ("r = /\\d+/;\n", "r = /\\\\d+/;", "escapes", 1, "r = /\\d+/;"),
        ('x = "é";\n', 'x = "\\u00e9";', "escapes", 1, 'x = "é";'),
        (SOURCE, "if (a &lt; b &amp;&amp; c)", "entities", 3, "if (a < b && c)"),
        ("<p>a &lt; b\n", "a < b", "entities", 1, "a &lt; b"),
        (SOURCE, "-  if (a < b && c) {\n-    return x;", "diff_signs", 3, LINES),
        (SOURCE, f"```tsx\n{LINES}\n```\n", "fence", 3, LINES),
        (SOURCE, "    return x;\n\n\n", "blank_lines", 4, "    return x;\n"),
        (SOURCE, "\n\nfunction f() {", "blank_lines", 1, "function f() {"),
        ("a\rb\rc\r", "a\nb", "carriage_return", 1, "a\rb"),
        ("a\nb\n", "a\rb", "carriage_return", 1, "a\nb"),
        ("x = 'a';\n", 'x = "a";', "look_alike", 1, "x = 'a';"),
        ("if (a) {\n  b = 1;\n}\n", "if (a) {\n  b = 2;", "similar", 1, "if (a) {\n  b = 1;"),
    ],
)
def test_what_a_text_was_copied_with_is_named_and_not_applied(
    file: str, old: str, difference: str, line: int, text: str
) -> None:
    found = edit_bytes(file.encode(), [TextEdit(old, "new")])
    assert isinstance(found, EditRefusal)
    assert (found.code, found.difference) == ("not_found", difference)
    assert (found.line, found.text) == (line, text)


def test_an_indented_block_is_not_taken_for_a_diff() -> None:
    found = edit_bytes(b"a();\nb();\n", [TextEdit("  a();\n  b();", "new")])
    assert isinstance(found, EditRefusal)
    assert found.difference == "indentation"


def test_control_characters_are_named() -> None:
    found = edit_bytes(b"a\rb\n", [TextEdit("a b", "new")])
    assert isinstance(found, EditRefusal)
    assert "the file has U+000D CARRIAGE RETURN, oldText U+0020 SPACE" in found.error


def test_half_a_pair_as_an_escape_is_left_as_it_is() -> None:
    found = edit_bytes(b"x\n", [TextEdit("\\ud83d x", "new")])
    assert isinstance(found, EditRefusal)
    assert found.code == "not_found"
