"""The outline of a source file: imports, exports and declarations, with their lines."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reprise.tools.outline import EXPORTS_MAX, Outline, outline
from reprise.tools.syntax_tree import DEPTH_MAX, GRAMMARS, SOURCE_BYTES_MAX, SyntaxRefusal
from tests.outline_sources import BROKEN, COMMONJS, LIBRARY, ROOT, SOURCES


def outlined(text: str, path: str) -> Outline:
    found = outline(text.encode(), path)
    assert isinstance(found, Outline), found
    return found


def refused(data: bytes, path: str) -> SyntaxRefusal:
    found = outline(data, path)
    assert isinstance(found, SyntaxRefusal)
    return found


def test_imports_tell_source_names_and_line() -> None:
    told = [
        (one.line, one.source, [f"{each.name}>{each.local}" for each in one.names], one.type_only)
        for one in outlined(ROOT, "Root.tsx").imports
    ]
    assert told == [
        (1, "react", ["default>React"], False),
        (2, "remotion", ["Composition>C", "Folder>Folder", "Still>Still"], False),
        (3, "remotion", ["*>R"], False),
        (4, "./TitleCard", ["TitleCard>TitleCard", "TitleProps>TitleProps"], False),
        (5, "./cards", ["Card>Card"], True),
        (6, "./style.css", [], False),
    ]


def test_require_is_an_import() -> None:
    told = [
        (one.line, one.source, [f"{each.name}>{each.local}" for each in one.names])
        for one in outlined(LIBRARY, "library.ts").imports
    ]
    assert told == [
        (1, "path", ["*>path"]),
        (2, "path", ["join>join", "resolve>solved"]),
        (2, "fs", ["*>fs"]),
    ]


def test_every_form_of_export_is_told() -> None:
    told = [
        (one.line, one.name, one.kind, one.local, one.source)
        for one in outlined(LIBRARY, "library.ts").exports
    ]
    assert told == [
        (4, "width", "const", "", ""),
        (4, "height", "const", "", ""),
        (4, "others", "const", "", ""),
        (4, "fps", "const", "", ""),
        (4, "first", "const", "", ""),
        (4, "last", "const", "", ""),
        (5, "joined", "const", "join", ""),
        (5, "default", "name", "Shape", ""),
        (6, "a text", "name", "a", "./other"),
        (6, "Props", "name", "", "./other"),
        (6, "Other", "name", "default", "./other"),
        (7, "*", "all", "", "./all"),
        (8, "everything", "namespace", "*", "./everything"),
        (9, "Shape", "type", "", ""),
        (10, "Named", "interface", "", ""),
        (13, "Colour", "enum", "", ""),
        (14, "Base", "class", "", ""),
        (15, "frames", "function", "", ""),
        (16, "over", "function", "", ""),
        (17, "ambient", "const", "", ""),
        (18, "Inner", "namespace", "", ""),
    ]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("export default function Foo() {}", ("default", "function", "Foo")),
        ("export default class extends A {}", ("default", "class", "")),
        ("export default () => 1;", ("default", "function", "")),
        ("export default Foo;", ("default", "name", "Foo")),
        ("const Foo = 1; export default Foo;", ("default", "const", "Foo")),
        ("export default {a: 1};", ("default", "value", "")),
        ("export = foo;", ("=", "assignment", "foo")),
    ],
)
def test_a_default_export_tells_what_it_is(source: str, told: tuple[str, str, str]) -> None:
    (export,) = outlined(source, "a.ts").exports
    assert (export.name, export.kind, export.local) == told


def test_an_export_by_name_has_the_lines_of_its_declaration() -> None:
    source = "function Foo() {\n  return 1;\n}\nconst x = 1;\nexport {Foo as Bar};\n"
    found = outlined(source, "a.ts")
    (export,) = found.exports
    assert (export.line, export.start_line, export.end_line) == (5, 1, 3)
    assert [symbol.name for symbol in found.declared] == ["x"]


def test_what_is_not_exported_is_told_with_its_lines() -> None:
    told = [
        (one.name, one.kind, one.start_line, one.end_line)
        for one in outlined(ROOT, "Root.tsx").declared
    ]
    assert told == [
        ("OUTRO", "const", 9, 9),
        ("shown", "const", 10, 10),
        ("defaults", "const", 12, 14),
        ("helper", "function", 39, 41),
    ]


def test_commonjs_exports_are_told_apart() -> None:
    found = outlined(COMMONJS, "common.js")
    assert found.exports == ()
    assert [(one.line, one.name) for one in found.commonjs] == [
        (3, "one"),
        (3, "two"),
        (4, "three"),
        (5, "module.exports"),
        (6, "a"),
        (7, "four"),
        (8, "five"),
    ]


def test_a_broken_file_has_an_outline_and_says_so() -> None:
    found = outlined(BROKEN, "broken.tsx")
    assert found.errors
    assert found.faults[0].text == "`<AbsoluteFill>` is never closed"
    assert [one.source for one in found.imports] == ["remotion"]
    assert [one.name for one in found.exports] == ["First", "Second", "Third"]


def test_a_whole_file_says_that_it_is() -> None:
    assert not outlined(ROOT, "Root.tsx").errors
    assert not outlined(LIBRARY, "library.ts").errors


def test_an_assertion_in_brackets_is_no_element_in_ts() -> None:
    source = "export const a = <T>x;\n"
    assert not outlined(source, "a.ts").errors
    assert outlined(source, "a.tsx").errors


@pytest.mark.parametrize("path", [f"src/a{suffix}" for suffix in GRAMMARS])
def test_every_suffix_has_a_grammar(path: str) -> None:
    assert [one.name for one in outlined("export const a = 1;", path).exports] == ["a"]


def test_bom_and_crlf_change_nothing() -> None:
    plain = outlined(ROOT, "Root.tsx")
    crlf = outlined("\ufeff" + ROOT.replace("\n", "\r\n"), "Root.tsx")
    assert crlf.exports == plain.exports
    assert crlf.imports == plain.imports
    assert crlf.declared == plain.declared
    assert crlf.total_lines == plain.total_lines == 41


def test_what_has_no_outline_says_why() -> None:
    assert refused(b"", "a.py").code == "no_grammar"
    assert refused(b"\xff", "a.ts").code == "not_utf8"
    assert refused(b"a\0", "a.ts").code == "binary"
    assert refused(b" " * (SOURCE_BYTES_MAX + 1), "a.ts").code == "too_large"


@pytest.mark.parametrize("unit", ["a<b,", "(", "{[", "<a>(", "<a>{", "f(a<b,"])
def test_what_would_exhaust_the_memory_is_refused(unit: str) -> None:
    assert refused(unit.encode() * 10_000, "a.tsx").code == "too_deep"


@pytest.mark.parametrize("unit", ["a<b,", "(", "{[", "<a>("])
def test_what_nests_up_to_the_limit_has_an_outline(unit: str) -> None:
    source = unit * (DEPTH_MAX // len(unit)) + "\nexport const a = 1;\n"
    assert outlined(source, "a.tsx").errors


def test_comparisons_in_many_statements_are_no_nesting() -> None:
    assert not outlined("if (a < b) c = d < e;\n" * 5_000, "a.ts").errors


def test_many_exports_are_cut_and_counted() -> None:
    count = EXPORTS_MAX + 5
    found = outlined("".join(f"export const a{at} = 1;\n" for at in range(count)), "a.ts")
    assert len(found.exports) == EXPORTS_MAX
    assert found.totals == {"exports": count}


def test_namespaces_and_exports_side_by_side_are_told_apart() -> None:
    source = "export const a = 1;\nnamespace N { export const b = 1; }\n" * 3
    assert [one.line for one in outlined(source, "a.ts").exports] == [1, 3, 5]


def test_an_import_of_very_many_names_has_an_outline() -> None:
    (one,) = outlined(f"import {{{'abc,' * 50_000}}} from 'a';", "a.ts").imports
    assert len(one.names) == 50_000


@given(st.text(max_size=200), st.sampled_from(sorted(GRAMMARS)))
@example("export", ".ts")
@example("import x = ", ".ts")
@example("<C id", ".tsx")
def test_any_text_has_an_outline(text: str, suffix: str) -> None:
    found = outline(text.encode("utf-8", "replace"), f"a{suffix}")
    assert isinstance(found, Outline) or found.code == "binary"


def test_an_import_without_its_quote_takes_nothing_from_the_next_line() -> None:
    found = outlined('import type {Card} from";\nimport "./style.css";\n', "a.tsx")
    assert found.errors
    assert all("\n" not in one.source for one in found.imports)


@given(st.data())
def test_any_part_of_a_source_has_an_outline_whose_lines_hold_its_names(
    data: st.DataObject,
) -> None:
    path = data.draw(st.sampled_from(sorted(SOURCES)))
    source = SOURCES[path]
    start = data.draw(st.integers(0, len(source)))
    end = data.draw(st.integers(start, len(source)))
    text = data.draw(st.sampled_from([source[start:end], source[:start] + source[end:]]))
    found = outlined(text, path)
    lines = ["", *text.split("\n")]
    for symbol in (*found.exports, *found.commonjs, *found.declared):
        assert symbol.name in lines[symbol.line]
        assert 1 <= symbol.start_line <= symbol.end_line < len(lines)
    for one in found.imports:
        assert one.source in lines[one.line]
    for composition in found.compositions:
        assert lines[composition.line].lstrip() != ""
        assert "<" in lines[composition.line]
    for fault in found.faults:
        assert 1 <= fault.column <= len(lines[fault.line]) + 1
