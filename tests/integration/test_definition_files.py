"""Definitions on disk: the shipped ones, and folders with broken files."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from reprise.errors import DefinitionInvalid, UnknownName
from resources.definition_files import (
    check_file,
    load_definitions,
    workflow_schema_text,
    write_workflow_schema,
)

SHIPPED = Path(__file__).parents[2] / "workflows"
WORKFLOW = "id: {id}\nsteps:\n  - {{order: 1, label: say, type: Agent, agent: {agent}}}\n"
CHARS_PER_TOKEN = 2.5
"""English has four, ids and figures have less than two."""
AGENT = "---\nagent_type: writer\n---\nWrite.\n"


def test_everything_that_ships_is_valid() -> None:
    definitions = load_definitions(SHIPPED)
    assert definitions.all_problems == ()
    assert list(definitions.workflows) == ["motion-titles", "quick-win-promo"]


def test_every_shipped_agent_has_a_bounded_schema() -> None:
    for agent in load_definitions(SHIPPED).agents.values():
        assert agent.output_schema is not None, agent.id
        assert _unbounded(agent.output_schema, agent.id) == []


def test_the_longest_answer_of_a_shipped_agent_is_not_cut() -> None:
    """A weak model fills every list and text; an answer that is cut fails the step."""
    for agent in load_definitions(SHIPPED).agents.values():
        tokens = _longest(agent.output_schema) / CHARS_PER_TOKEN
        assert tokens <= agent.parameters.max_output_tokens, agent.id


def test_the_json_schema_on_disk_is_the_models(update_golden: bool) -> None:
    path = SHIPPED / "workflow.schema.json"
    if update_golden:
        write_workflow_schema(path)
    assert path.read_text(encoding="utf-8") == workflow_schema_text(), (
        "run this test with --update-golden and read the difference"
    )


@pytest.mark.parametrize("name", ["motion-titles", "quick-win-promo"])
def test_a_shipped_workflow_fits_the_json_schema(name: str) -> None:
    schema = yaml.safe_load(workflow_schema_text())
    document = yaml.safe_load((SHIPPED / f"{name}.yaml").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(document)


def test_names_are_found_by_id_and_by_slug() -> None:
    definitions = load_definitions(SHIPPED)
    assert definitions.workflow("quick_win_promo").id == "quick-win-promo"
    assert definitions.agent("story_editor").id == "story-editor"


def test_a_broken_workflow_hides_no_other_one(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    (folder / "good.yaml").write_text(WORKFLOW.format(id="good", agent="writer"))
    (folder / "bad.yaml").write_text(WORKFLOW.format(id="bad", agent="nobody"))
    (folder / "torn.yaml").write_text("id: torn\nsteps: [")
    definitions = load_definitions(folder)
    assert list(definitions.workflows) == ["good"]
    assert sorted(Path(name).name for name in definitions.problems) == ["bad.yaml", "torn.yaml"]
    with pytest.raises(DefinitionInvalid, match="there is no agent 'nobody'"):
        definitions.workflow("bad")


def test_a_missing_prompt_is_a_problem_of_the_workflow_that_names_it(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    (folder / "w.yaml").write_text(WORKFLOW.format(id="w", agent="writer"))
    (folder / "prompts" / "writer.md").unlink()
    assert load_definitions(folder).all_problems == (
        f"{folder / 'w.yaml'}:3: step 1 (say): there is no agent 'writer': "
        "add the prompt file prompts/writer.md",
    )


def test_two_ids_that_slug_alike_are_a_problem(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    (folder / "a.yaml").write_text(WORKFLOW.format(id="my-film", agent="writer"))
    (folder / "b.yaml").write_text(WORKFLOW.format(id="my_film", agent="writer"))
    definitions = load_definitions(folder)
    assert list(definitions.workflows) == ["my-film"]
    assert "the id 'my_film' reads like 'my-film'" in definitions.all_problems[0]


def test_a_file_that_is_not_utf_8_is_told_by_line(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    (folder / "w.yaml").write_bytes(b"id: w\nname: \xff\nsteps: []\n")
    assert load_definitions(folder).all_problems == (
        f"{folder / 'w.yaml'}:2: this is not UTF-8 text; save the file as UTF-8",
    )


def test_an_unknown_name_gets_a_suggestion() -> None:
    definitions = load_definitions(SHIPPED)
    with pytest.raises(UnknownName, match=r"did you mean 'quick-win-promo'\?"):
        definitions.workflow("quickwin-promo")
    with pytest.raises(UnknownName, match="there is no agent 'zzz'"):
        definitions.agent("zzz")


def test_a_missing_folder_is_an_unknown_name(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="there is no folder"):
        load_definitions(tmp_path / "nowhere")


def test_a_single_file_can_be_checked(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    good = folder / "w.yaml"
    good.write_text(WORKFLOW.format(id="w", agent="writer"))
    assert check_file(good) == ()
    assert check_file(folder / "prompts" / "writer.md") == ()
    (folder / "prompts" / "writer.md").write_text("no front matter")
    assert "must begin with front matter" in check_file(folder / "prompts" / "writer.md")[0]
    assert "has a file that is not valid" in check_file(good)[0]


def test_blocks_of_a_feature_that_is_off_are_left_out_of_prompts_and_skills(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    block = "<!-- with sandbox_edit_tools -->\nEdit.\n<!-- end -->\n"
    front = "---\nagent_type: writer\nskills: [care]\n---\n"
    (folder / "prompts" / "writer.md").write_text(f"{front}Write.\n{block}")
    (folder / "skills").mkdir()
    (folder / "skills" / "care.md").write_text(f"Care.\n{block}")
    on = load_definitions(folder).agents["writer"]
    off = load_definitions(folder, features=()).agents["writer"]
    assert (on.system_prompt, on.assigned_skills) == ("Write.\nEdit.\n", ("Care.\nEdit.\n",))
    assert (off.system_prompt, off.assigned_skills) == ("Write.\n", ("Care.\n",))


def test_a_broken_block_of_a_skill_is_a_problem_of_its_file(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    (folder / "skills").mkdir()
    (folder / "skills" / "care.md").write_text("Care.\n<!-- end -->\n")
    assert load_definitions(folder).all_problems == (
        f"{folder / 'skills' / 'care.md'}:2: `<!-- end -->` ends no block; remove it",
    )


def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "workflows"
    (folder / "prompts").mkdir(parents=True)
    (folder / "prompts" / "writer.md").write_text(AGENT)
    return folder


def _unbounded(schema: object, where: str) -> list[str]:
    """Return the places where a text or a list of the schema has no upper bound."""
    if isinstance(schema, list):
        return [each for item in schema for each in _unbounded(item, where)]
    if not isinstance(schema, dict):
        return []
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    found = []
    if "string" in kinds and "maxLength" not in schema and "enum" not in schema:
        found.append(f"{where}: text")
    if "array" in kinds and "maxItems" not in schema:
        found.append(f"{where}: list")
    if "object" in kinds and schema.get("additionalProperties") is not False:
        found.append(f"{where}: open object")
    for name, item in schema.items():
        found += _unbounded(item, f"{where}.{name}")
    return found


def _longest(schema: Any) -> int:
    """Return the characters of the longest JSON that fits a schema, blanks after marks reckoned."""
    if "enum" in schema:
        return max(len(json.dumps(each)) for each in schema["enum"])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    longest = 10
    if "string" in kinds:
        longest = schema["maxLength"] + 2
    if "array" in kinds:
        longest = 2 + schema["maxItems"] * (2 + _longest(schema["items"]))
    if "object" in kinds:
        fields = schema["properties"].items()
        longest = 2 + sum(len(name) + 6 + _longest(each) for name, each in fields)
    return longest
