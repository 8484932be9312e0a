"""`reprise run` and `reprise results`: what they print, and what odd footage gives."""

import json
from pathlib import Path

import dagster as dg
import pytest

from tests.acceptance.command_line import User, finish
from tests.acceptance.silent_server import SilentServer
from tests.acceptance.warm_start import Command
from tests.media_files import clip, make_media

RUN_FIELDS = {"run_id", "status", "seconds", "steps"}
STEP_FIELDS = {
    "order",
    "label",
    "type",
    "status",
    "from_cache",
    "cache_reason",
    "seconds",
    "tokens_used",
    "cached_tokens_saved",
    "cost",
    "storage_keys",
}


def test_the_object_has_what_a_program_needs(user: User, footage: Path) -> None:
    user.add("p", footage)

    first = user.call("run", "look", "p", "--json").json
    again = user.call("run", "look", "p", "--json").json
    refreshed = user.call("run", "look", "p", "--json", "--cache", "refresh").json
    bypassed = user.call("run", "look", "p", "--json", "--cache", "bypass").json

    assert set(first) >= RUN_FIELDS
    assert set(first["steps"][0]) >= STEP_FIELDS
    assert first["status"] == "succeeded"
    assert (first["steps"][0]["order"], first["steps"][0]["label"]) == (1, "look")
    assert first["steps"][0]["type"] == "VideoAnalyze"
    assert first["steps"][0]["storage_keys"] != []
    reasons = [run["steps"][0]["cache_reason"] for run in (first, again, refreshed, bypassed)]
    assert reasons == ["first_time", "hit", "refresh", "bypass"]
    assert [run["steps"][0]["from_cache"] for run in (first, again)] == [False, True]
    recorded = {run.run_id: run.status for run in user.runs()}
    assert recorded[first["run_id"]] is dg.DagsterRunStatus.SUCCESS


def test_a_person_sees_few_plain_lines_and_a_table(user: User, tmp_path: Path) -> None:
    user.add("p", clip(tmp_path / "my tone.mp4", seconds=5.0))

    done = user.call("run", "cut", "p")

    assert done.code == 0
    assert "look: my tone.mp4 (1 of 1): measuring" in done.err
    assert "e+" not in done.err
    assert len(done.err.splitlines()) < 12
    assert done.err.splitlines()[-1].startswith("  film: done in ")
    assert "cut on p: succeeded in " in done.out
    assert "film.mp4" in done.out
    assert "the film has no captions" in done.out


def test_a_request_is_kept_for_the_next_run(user: User, footage: Path) -> None:
    user.add("p", footage)
    first = user.call("run", "read", "p", "--json", "--request", "for sailors").json
    same = user.call("run", "read", "p", "--json").json
    other = user.call("run", "read", "p", "--json", "--request", "for divers").json

    reasons = [[step["cache_reason"] for step in run["steps"]] for run in (first, same, other)]
    assert reasons == [["first_time", "first_time"], ["hit", "hit"], ["hit", "field_changed"]]


def test_keys_in_the_environment_call_nobody(
    user: User, footage: Path, silent: SilentServer
) -> None:
    user.add("p", footage)

    done = user.call(
        "run", "read", "p",
        OPENAI_API_KEY="sk-test", OPENAI_BASE_URL=silent.url, ANTHROPIC_API_KEY="test",
        HTTP_PROXY=silent.url, HTTPS_PROXY=silent.url,
    )  # fmt: skip

    assert done.code == 0
    assert silent.calls == 0


@pytest.mark.parametrize("kind", ["empty", "garbage", "truncated", "sound"])
def test_footage_that_cannot_be_used_is_named_in_one_line(
    user: User, tmp_path: Path, footage: Path, kind: str
) -> None:
    path = tmp_path / "bad take.mp4"
    if kind == "sound":
        make_media(path, "-f", "lavfi", "-i", "sine=d=2", "-c:a", "aac")
    else:
        whole = footage.read_bytes()
        data = {"empty": b"", "garbage": b"\x00\x01nothing" * 999, "truncated": whole[:9000]}
        path.write_bytes(data[kind])
    user.add("p", path)

    done = user.call("run", "look", "p", "--json")

    assert done.code == 1, done
    assert done.json["status"] == "failed"
    assert "step 1 (look)" in done.error
    assert "bad take.mp4" in done.error
    assert not any(len(word) > 60 for word in done.error.split()), done.error
    user.call("project", "remove", "p", "bad take.mp4")
    user.add("p", footage)
    assert user.call("run", "look", "p").code == 0


def test_a_project_without_video_says_what_to_do(user: User, brief: Path) -> None:
    user.add("p", brief)

    done = user.call("run", "look", "p", "--json")

    assert done.code == 1
    assert "has no video" in done.error
    assert "reprise project add p FILE" in done.error
    assert [step["status"] for step in done.json["steps"]] == ["failed"]


def test_a_video_without_sound_gives_a_film_that_says_so(user: User, tmp_path: Path) -> None:
    user.add("p", clip(tmp_path / "mute.mp4", seconds=5.0, sound=None))

    done = user.call("run", "cut", "p")

    assert done.code == 0, done.err
    assert "mute.mp4: no sound track" in done.out
    assert "the film has no captions" in done.out


@pytest.mark.slow
def test_a_video_without_speech_gives_a_promo_that_says_so(user: User, footage: Path) -> None:
    user.add("p", footage)

    done = user.call("run", "quick-win-promo", "p")

    assert done.code == 0, done.err
    assert "no speech was found" in done.out
    assert "the film has no captions" in done.out
    assert "captions.srt" not in done.out


def test_two_runs_of_one_project_at_once_are_both_right(user: User, footage: Path) -> None:
    user.add("p", footage)

    at_once: list[Command] = [user.start("run", "cut", "p", "--json") for _ in range(2)]
    done = [finish(command) for command in at_once]

    assert [one.code for one in done] == [0, 0], [one.err for one in done]
    films = [one.json["steps"][2]["output_storage_key"] for one in done]
    assert films[0] == films[1]
    assert user.leftovers() == []
    again = user.call("run", "cut", "p", "--json").json
    assert [step["from_cache"] for step in again["steps"]] == [True, True, True]


def test_two_first_runs_of_a_new_home_at_once_are_both_right(user: User, footage: Path) -> None:
    user.add("p", footage)
    for path in user.home.glob("dagster/**/*.db*"):
        path.unlink()

    at_once = [user.start("run", "look", "p", "--json") for _ in range(2)]
    done = [finish(command) for command in at_once]

    assert [one.code for one in done] == [0, 0], [one.err for one in done]


def test_results_are_those_of_the_latest_good_run(
    user: User, tmp_path: Path, footage: Path
) -> None:
    user.add("p", footage)
    good = user.call("run", "cut", "p", "--json").json
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(b"no video at all" * 500)
    user.add("p", bad)
    assert user.call("run", "cut", "p").code == 1

    shown = user.call("results", "cut", "p")
    steps = user.call("results", "cut", "p", "--json").json["steps"]
    copied = user.call("results", "cut", "p", "--copy", tmp_path / "out" / "here")

    assert {step["run_id"] for step in steps} == {good["run_id"]}
    assert "film.mp4" in shown.out
    assert copied.code == 0
    assert (tmp_path / "out/here/film.mp4").stat().st_size > 1000
    assert json.loads((tmp_path / "out/here/s03_film.json").read_text())["cuts"] >= 1


def test_results_that_cannot_be_copied_are_a_clear_error(
    user: User, tmp_path: Path, footage: Path
) -> None:
    user.add("p", footage)
    assert user.call("run", "cut", "p").code == 0
    blocked = tmp_path / "blocked"
    blocked.write_text("a file")

    into_file = user.call("results", "cut", "p", "--copy", blocked)
    into_system = user.call("results", "cut", "p", "--copy", "/proc/nowhere")
    for film in user.objects("artifacts"):
        if film.name == "film.mp4":
            film.unlink()
    shown = user.call("results", "cut", "p")
    gone = user.call("results", "cut", "p", "--copy", tmp_path / "out")

    assert (into_file.code, into_system.code, gone.code) == (1, 1, 1)
    assert "move it away" in into_file.error
    assert "/proc/nowhere" in into_system.error
    assert "gone from the object store" in shown.out
    assert "film.mp4" in gone.error
    assert not (tmp_path / "out" / "film.mp4").exists()
