"""What every loader of Function steps' callables does: from files, and from texts in memory."""

import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from reprise.errors import BadInput, RepriseError, UnknownName
from reprise.ports import FunctionLoader
from resources.memory_functions import MemoryFunctions
from resources.python_functions import PythonFunctions

Write = Callable[[Mapping[str, str]], None]


class Loaders:
    """A loader and a way to write its modules."""

    def __init__(self, loader: FunctionLoader, write: Write, place: str) -> None:
        self.loader = loader
        self._write = write
        self.place = place
        """What stands before a file's name in messages."""

    def write(self, **texts: str) -> None:
        self._write({name: textwrap.dedent(text) for name, text in texts.items()})

    def result(self, reference: str) -> object:
        return self.loader.load(reference).call(None)  # type: ignore[arg-type]  # Unused.

    def refusal(self, reference: str) -> RepriseError:
        with pytest.raises(RepriseError) as caught:
            self.loader.load(reference)
        return caught.value


def _files(folder: Path) -> Loaders:
    def write(texts: Mapping[str, str]) -> None:
        for name, text in texts.items():
            path = folder.joinpath(*name.replace("/", ".").split(".")).with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return Loaders(PythonFunctions([folder], list), write, f"{folder}/")


def _memory() -> Loaders:
    functions = MemoryFunctions()
    return Loaders(functions, functions.texts.update, "")


@pytest.fixture(params=["files", "memory"])
def loaders(request: pytest.FixtureRequest, tmp_path: Path) -> Loaders:
    return _files(tmp_path) if request.param == "files" else _memory()


def test_a_function_is_called(loaders: Loaders) -> None:
    loaders.write(promo="def pick(inputs):\n    return 1\n")

    assert loaders.result("promo:pick") == 1


def test_a_module_inside_a_package_sees_its_siblings(loaders: Loaders) -> None:
    loaders.write(
        **{
            "kit/__init__": "VALUE = 1\n",
            "kit.promo": "from . import VALUE\nfrom .parts import two\nimport kit.parts as parts\n"
            "def pick(inputs):\n    return [VALUE, two(), parts.two()]\n",
            "kit.parts": "from kit import VALUE\ndef two():\n    return VALUE + 1\n",
        }
    )

    assert loaders.result("kit.promo:pick") == [1, 2, 2]


def test_a_folder_without_init_is_a_package(loaders: Loaders) -> None:
    loaders.write(
        **{
            "kit.promo": "from kit.parts import one\nfrom kit import parts\nimport kit.parts\n"
            "def pick(inputs):\n    return [one(), parts.one(), kit.parts.one()]\n",
            "kit.parts": "def one():\n    return 1\n",
        }
    )

    assert loaders.result("kit.promo:pick") == [1, 1, 1]


def test_an_edited_helper_is_loaded_anew_with_all_that_imports_it(loaders: Loaders) -> None:
    loaders.write(promo="from parts import one\ndef pick(inputs):\n    return one()\n")
    loaders.write(parts="def one():\n    return 1\n")
    before = loaders.loader.load("promo:pick")
    loaders.write(parts="def one():\n    return 2\n")
    after = loaders.loader.load("promo:pick")

    assert (before.call(None), after.call(None)) == (1, 2)  # type: ignore[arg-type]  # Unused.
    assert before.fingerprint() != after.fingerprint()


def test_nothing_is_loaded_twice_while_nothing_changes(loaders: Loaders) -> None:
    loaders.write(promo="SEEN = []\ndef pick(inputs):\n    SEEN.append(1)\n    return len(SEEN)\n")

    assert [loaders.result("promo:pick") for _ in range(3)] == [1, 2, 3]


def test_a_new_module_takes_the_place_of_an_installed_one_only_when_it_is_there(
    loaders: Loaders,
) -> None:
    loaders.write(
        promo="try:\n    from parts import one\nexcept ImportError:\n    one = None\n"
        "def pick(inputs):\n    return one and one()\n"
    )
    assert loaders.result("promo:pick") is None
    loaders.write(parts="def one():\n    return 1\n")

    assert loaders.result("promo:pick") == 1


def test_dataclasses_enums_and_annotations_work_in_a_users_module(loaders: Loaders) -> None:
    loaders.write(
        promo="""
            from __future__ import annotations
            import dataclasses, enum, pickle, typing
            from pydantic import BaseModel

            @dataclasses.dataclass
            class Clip:
                name: str
                parts: typing.ClassVar[int] = 2

            class Kind(enum.Enum):
                A = 1

            class Cut(BaseModel):
                clip: Clip

            def pick(inputs):
                cut = Cut(clip=Clip("a"))
                names = [field.name for field in dataclasses.fields(Clip)]
                hints = typing.get_type_hints(Clip, include_extras=True)
                again = pickle.loads(pickle.dumps(Kind.A))
                return [cut.clip.name, names, hints["name"].__name__, again is Kind.A]
        """
    )

    assert loaders.result("promo:pick") == ["a", ["name"], "str", True]


def test_the_engine_and_the_standard_library_are_the_ones_that_run(loaders: Loaders) -> None:
    loaders.write(
        json="def dumps(value):\n    return 'not this'\n",
        promo="import json\nfrom reprise.model.function import FunctionResult\n"
        "def pick(inputs):\n    return FunctionResult(json.dumps(1))\n",
    )
    from reprise.model.function import FunctionResult

    assert loaders.result("promo:pick") == FunctionResult("1")
    assert "the module 'json' is the standard library's" in str(loaders.refusal("json:dumps"))


@pytest.mark.parametrize(
    ("reference", "kind", "said"),
    [
        ("promoo:pick", UnknownName, "the module 'promoo' is not there; modules are looked for in"),
        ("promoo:pick", UnknownName, "; did you mean 'promo'?"),
        ("promo:pik", UnknownName, "there is no 'pik' in {place}promo.py; did you mean 'pick'?"),
        ("promo:VALUE", BadInput, "is no function but a value of type int"),
        ("promo:Clip", BadInput, "is a class; name a function"),
        ("promo:later", BadInput, "is async; make it a plain function"),
        ("promo:timed_later", BadInput, "is async; make it a plain function"),
        ("promo:caller", BadInput, "is async; make it a plain function"),
        ("promo:each", BadInput, "is a generator; make it return a list"),
        ("promo:two", BadInput, "cannot be called with one argument, the inputs: missing a"),
        ("promo:none", BadInput, "cannot be called with one argument, the inputs: too many"),
    ],
)
def test_a_wrong_name_is_said_with_what_to_do(
    loaders: Loaders, reference: str, kind: type[RepriseError], said: str
) -> None:
    loaders.write(
        promo="""
            import functools
            VALUE = 1
            class Clip: ...
            class Caller:
                async def __call__(self, inputs): ...
            caller = Caller()
            async def later(inputs): ...
            @functools.wraps(later)
            def timed_later(inputs):
                return later(inputs)
            def pick(inputs): ...
            def each(inputs):
                yield 1
            def two(inputs, other): ...
            def none(): ...
        """
    )
    error = loaders.refusal(reference)

    assert isinstance(error, kind)
    assert said.format(place=loaders.place) in str(error)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def pick(inputs):\n    return (1\n", "{place}promo.py:2: SyntaxError: '(' was never"),
        ("import absent_thing\n", "{place}promo.py:1: ModuleNotFoundError: No module named"),
        ("\nfrom parts import three\n", "{place}promo.py:2: ImportError: cannot import name"),
        ("from parts import one\none()\n", "{place}parts.py:2: ZeroDivisionError: division by"),
        ("from . import parts\n", "{place}promo.py:1: ImportError: attempted relative import"),
        ("raise SystemExit(3)\n", "{place}promo.py:1: SystemExit: 3"),
        ("import torn\n", "{place}torn.py:1: SyntaxError: invalid syntax"),
    ],
)
def test_a_module_that_cannot_be_loaded_names_file_and_line(
    loaders: Loaders, text: str, said: str
) -> None:
    loaders.write(promo=text, parts="def one():\n    return 1 / 0\n", torn="1 +* 2\n")
    error = loaders.refusal("promo:pick")

    assert isinstance(error, BadInput)
    assert str(error).startswith(f"promo:pick cannot be loaded: {said.format(place=loaders.place)}")


def test_a_broken_module_does_not_hinder_the_others(loaders: Loaders) -> None:
    loaders.write(promo="def pick(inputs):\n    return 1\n", torn="1 +* 2\n")
    loaders.refusal("torn:pick")

    assert loaders.result("promo:pick") == 1
    loaders.write(torn="def pick(inputs):\n    return 2\n")
    assert loaders.result("torn:pick") == 2


def test_the_first_folder_wins_and_further_paths_come_after(tmp_path: Path) -> None:
    for folder, value in [("one", 1), ("two", 2), ("more", 3)]:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "late.py").write_text(f"def pick(inputs):\n    return {value}\n")
    (tmp_path / "one" / "late.py").unlink()
    functions = PythonFunctions([tmp_path / "one", tmp_path / "two"], lambda: [tmp_path / "more"])

    assert functions.load("late:pick").call(None) == 2  # type: ignore[arg-type]  # Unused.
    (tmp_path / "one" / "late.py").write_text("def pick(inputs):\n    return 1\n")
    assert functions.load("late:pick").call(None) == 1  # type: ignore[arg-type]  # Unused.


def test_a_file_that_is_no_text_is_said(tmp_path: Path) -> None:
    (tmp_path / "promo.py").write_bytes(b"VALUE = '\xff'\n")

    with pytest.raises(BadInput, match=r"promo.py:1: the file cannot be read as Python"):
        PythonFunctions([tmp_path], list).load("promo:pick")


def test_by_default_the_current_folder_is_looked_in_and_installed_packages_are_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.py").write_text(
        "import yaml\ndef pick(inputs):\n    return yaml.safe_load('1')\n"
    )
    function = PythonFunctions([tmp_path / "workflows"]).load("here:pick")

    assert function.call(None) == 1  # type: ignore[arg-type]  # Unused.
    assert len(function.fingerprint()) == 64
