"""The Remotion compositions in a file's outline."""

import pytest

from reprise.tools.outline import Outline, outline
from reprise.tools.outline_compositions import FOLDERS_MAX, Composition
from tests.outline_sources import ROOT


def compositions(text: str, path: str = "Root.tsx") -> tuple[Composition, ...]:
    found = outline(text.encode(), path)
    assert isinstance(found, Outline), found
    return found.compositions


def test_compositions_have_id_kind_lines_and_folders() -> None:
    told = [(one.line, one.end_line, one.kind, one.id, one.folders) for one in compositions(ROOT)]
    assert told == [
        (19, 24, "Composition", "TitleCard", ()),
        (26, 26, "Composition", "Outro", ("ends",)),
        (28, 28, "Still", "Poster", ("ends", "inner")),
        (32, 32, "Composition", None, ()),
        (34, 34, "Composition", None, ()),
    ]


@pytest.mark.parametrize(
    ("element", "known", "raw"),
    [
        ('<Composition id="a" />', "a", '"a"'),
        ("<Composition id='a&amp;b' />", "a&b", "'a&amp;b'"),
        ('<Composition id={"a"} />', "a", '{"a"}'),
        ("<Composition id={`a`} />", "a", "{`a`}"),
        ("<Composition id={ID} />", "id", "{ID}"),
        ("<Composition id={ID!} />", "id", "{ID!}"),
        ("<Composition id={(ID as string)} />", "id", "{(ID as string)}"),
        ("<Composition id={`a-${ID}`} />", None, "{`a-${ID}`}"),
        ("<Composition id={made(1)} />", None, "{made(1)}"),
        ("<Composition id={unknown} />", None, "{unknown}"),
        ('<Composition id={"a\\n"} />', None, '{"a\\n"}'),
        ("<Composition {...ID} />", None, ""),
        ("<Composition id />", None, ""),
        ('<Composition<Props> id="a">b</Composition>', "a", '"a"'),
        ('<Composition id="a" id="b" />', "b", '"b"'),
    ],
)
def test_an_id_is_known_or_shown_as_written(element: str, known: str | None, raw: str) -> None:
    (one,) = compositions(f'const ID = "id" as const;\nconst x = {element};\n')
    assert (one.id, one.raw, one.dynamic) == (known, raw, known is None)


def test_a_name_that_means_something_else_inside_is_dynamic() -> None:
    source = 'const id = "a";\nconst x = ids.map((id) => <Composition id={id} />);\n'
    (one,) = compositions(source)
    assert (one.id, one.raw) == (None, "{id}")


def test_a_name_that_can_change_is_dynamic() -> None:
    (one,) = compositions('let id = "a";\nconst x = <Composition id={id} />;\n')
    assert one.id is None


def test_a_tag_counts_by_what_it_is_imported_as() -> None:
    source = (
        'import {Still as Composition, Composition as Still} from "remotion";\n'
        'const x = [<Composition id="a" />, <Still id="b" />, <R.Still id="c" />];'
    )
    assert [(one.id, one.kind) for one in compositions(source)] == [
        ("a", "Still"),
        ("b", "Composition"),
        ("c", "Still"),
    ]


def test_texts_and_comments_are_no_elements() -> None:
    source = (
        '/* <Still id="a" /> */ const x = "<Still id=\'b\' />"; const y = `<Still id="c" />`;\n'
    )
    assert compositions(source) == ()


def test_an_element_that_is_never_closed_is_told() -> None:
    source = 'export const Root = () => {\n  return <Composition id="a">;\n};\n'
    assert [(one.line, one.id) for one in compositions(source)] == [(2, "a")]


def test_javascript_has_compositions_too() -> None:
    source = 'export const Root = ({id}) => <Composition id="a" />;\n'
    assert [one.id for one in compositions(source, "Root.jsx")] == ["a"]


def test_folders_without_end_are_cut() -> None:
    count = 2_000
    source = f"""const x = {"<Folder name='f'><Still id='s' />" * count}{"</Folder>" * count};"""
    found = compositions(source)
    assert found[0].folders == ("f",)
    assert found[-1].folders == ("f",) * FOLDERS_MAX
