from apps.commands.explain import MEANINGS
from reprise.cache.explain import explain_changes, explained_digests, text_difference
from reprise.cache.key import KeyFacts
from reprise.model.result import CacheReason


def test_every_reason_has_a_meaning() -> None:
    assert set(MEANINGS) == set(CacheReason)


def test_a_change_is_told_down_to_step_file_and_program() -> None:
    def digests(step: str, file: str, program: str, prompt: str) -> dict[str, str]:
        facts = KeyFacts(files=(("f1", "row"),), toolchain={"ffmpeg": program})
        fields = {"resolved_input": step, "agent_system_prompt": prompt, "toolchain": program}
        return explained_digests(fields, {"step 2 (hook)": step}, facts, {"f1": ("talk.mp4", file)})

    before = digests("a", "d1", "9.0", "p")

    assert explain_changes(before, before) == ()
    (inputs,) = explain_changes(before, digests("b", "d1", "9.0", "p"))
    assert (inputs.field, inputs.parts) == ("resolved_input", ("step 2 (hook)",))
    (files,) = explain_changes(before, digests("a", "d2", "9.0", "p"))
    assert (files.field, files.parts) == ("project_file_fingerprint", ("talk.mp4",))
    (tools,) = explain_changes(before, digests("a", "d1", "9.1", "p"))
    assert (tools.field, tools.parts) == ("toolchain", ("ffmpeg",))
    (prompt,) = explain_changes(before, digests("a", "d1", "9.0", "q"))
    assert (prompt.field, prompt.parts) == ("agent_system_prompt", ())


def test_a_tool_with_a_new_revision_is_named() -> None:
    def digests(revision: str) -> dict[str, str]:
        facts = KeyFacts(
            tools=(
                {"name": "read_project_file", "revision": revision},
                {"name": "list_project_files", "revision": "1"},
            )
        )
        return explained_digests({"agent_tools": revision}, {}, facts, {})

    (change,) = explain_changes(digests("1"), digests("2"))

    assert (change.field, change.parts) == ("agent_tools", ("read_project_file",))


def test_another_name_of_a_part_is_no_change_of_its_field() -> None:
    before = {"resolved_input": "1", "resolved_input / step 1 (read)": "1", "model": "1"}
    now = {"resolved_input": "1", "resolved_input / step 1 (load)": "1", "model": "2"}
    (change,) = explain_changes(before, now)
    assert change.field == "model"


def test_a_part_that_came_or_went_says_so() -> None:
    (change,) = explain_changes({"f / a": "1", "f / b": "1"}, {"f / b": "1", "f / c": "1"})
    assert change.parts == ("a, gone", "c, new")


def test_prompts_are_shown_as_a_short_difference() -> None:
    before = '["Find hooks.\\nBe brief.\\nEnd."]'
    now = '["Find hooks.\\nBe very brief.\\nEnd."]'
    assert text_difference(before, now) == [
        "@@ -1,3 +1,3 @@",
        " Find hooks.",
        "-Be brief.",
        "+Be very brief.",
        " End.",
    ]


def test_a_long_difference_is_cut_and_says_so() -> None:
    now = "\n".join(f"line {number}" for number in range(100))
    lines = text_difference("", now)
    assert len(lines) == 41
    assert lines[-1] == "… 61 more lines"
