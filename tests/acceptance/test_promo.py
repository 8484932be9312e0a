"""The film that `quick-win-promo` makes of the sample project, measured.

Source: issue 2, "The workflow quick-win-promo". What is really said in the talk, and when, comes
from examples/truth, not from what the engine heard.
"""

import re
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from reprise.media.render_units import OverlaySpan
from resources.text_overlays import TextPainter
from tests.acceptance.film_measures import (
    RATE_HZ,
    Promo,
    ffmpeg_says,
    level_db,
    luma_at,
    plain_words,
    read_promo,
    recognised,
    sound,
    truth,
    truth_words,
    word_error_rate,
)
from tests.acceptance.promo_run import SAMPLE, STEPS, PromoHome

TITLE = "Free to Share"
TALK = "open-film-talk.mp4"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> PromoHome:
    """A home with the sample project."""
    made = PromoHome(tmp_path_factory.mktemp("sample"))
    made.add("sample", *sorted(SAMPLE.iterdir()))
    return made


@pytest.fixture(scope="module")
def promo(home: PromoHome) -> Promo:
    """The promo that the first run in that home makes."""
    run = home.run("sample")
    return read_promo(run, home.results("sample", home.root / "results"))


def test_the_film_lasts_15_to_40_seconds_and_at_most_half_of_its_footage(promo: Promo) -> None:
    with av.open(str(promo.film)) as container:
        seconds = (container.duration or 0) / av.time_base
    assert 15 <= seconds <= 40
    assert seconds <= truth()["duration_seconds"] / 2
    assert seconds == pytest.approx(promo.seconds, abs=0.05)


def test_the_film_is_h264_at_the_size_and_rate_of_its_footage(promo: Promo) -> None:
    with av.open(str(promo.film)) as container:
        picture, track = container.streams.video[0], container.streams.audio[0]
        assert (picture.codec_context.name, picture.codec_context.pix_fmt) == ("h264", "yuv420p")
        # Smaller than 1080p, so the size of the source.
        assert (picture.width, picture.height) == (1280, 720)
        assert picture.average_rate == 24
        assert (track.codec_context.name, track.rate, track.channels) == ("aac", 48_000, 2)
        assert picture.frames == sum(
            cut["end_frame"] - cut["start_frame"] for cut in promo.decision["cuts"]
        )


def test_the_film_has_at_least_four_cuts_of_the_talk(promo: Promo) -> None:
    names = {source["id"]: source["name"] for source in promo.analysis["sources"]}
    assert len(promo.decision["cuts"]) >= 4
    assert {names[cut["source_id"]] for cut in promo.decision["cuts"]} == {TALK}


def test_no_word_is_cut_off(promo: Promo) -> None:
    edges = [edge for span in promo.spans for edge in span]
    # Aligned by force, the true times are good to about 0.1 s.
    cut_off = [
        (word.text, edge)
        for word in truth_words()
        for edge in edges
        if word.start + 0.1 < edge < word.end - 0.1
    ]
    assert cut_off == []


def test_the_talk_is_quiet_where_it_is_cut(promo: Promo) -> None:
    """A word that were cut off would be heard at the edge, whatever any word times say."""
    talk = sound(SAMPLE / TALK)
    around = RATE_HZ * 15 // 1000
    loud = {}
    for edge in sorted({edge for span in promo.spans for edge in span}):
        at = min(max(round(edge * RATE_HZ), around), len(talk) - around)
        loud[round(edge, 3)] = round(level_db(talk[at - around : at + around]), 1)
    # Voices are at -21 dBFS, the room at -72.
    assert {edge: level for edge, level in loud.items() if level > -50} == {}


def test_nothing_black_frozen_or_silent_is_left(promo: Promo) -> None:
    found = ffmpeg_says(
        promo.film,
        *("-vf", "blackdetect=d=0.7:pic_th=0.9,freezedetect=n=-60dB:d=0.7"),
        *("-af", "silencedetect=n=-45dB:d=0.7"),
    )
    assert re.findall(r"(?:black_start|freeze_start|silence_start)\S* ?[\d.]+", found) == []
    (black,) = truth()["black_spans"]
    cuts = promo.decision["cuts"]
    assert [
        cut
        for cut in cuts
        if cut["start_frame"] < black["end_frame"] and cut["end_frame"] > black["start_frame"]
    ] == []


def test_false_starts_are_left_out(promo: Promo) -> None:
    heard = " ".join(word.text for words in promo.said for word in words)
    assert "microphone" not in heard
    assert "sorry" not in heard


def test_captions_come_and_go_with_the_words(promo: Promo) -> None:
    words = [word for in_cut in promo.said for word in in_cut]
    assert plain_words(" ".join(cue.text for cue in promo.cues))
    at = 0
    late = {}
    for cue in promo.cues:
        count = len(plain_words(cue.text))
        spoken = words[at : at + count]
        at += count
        shifts = (cue.start - spoken[0].start, cue.end - spoken[-1].end)
        if max(map(abs, shifts)) > 0.1:
            late[cue.text] = tuple(round(shift, 3) for shift in shifts)
    assert at == len(words)
    assert late == {}


def test_captions_say_what_is_said(promo: Promo) -> None:
    said = plain_words(" ".join(word.text for words in promo.said for word in words))
    shown = plain_words(" ".join(cue.text for cue in promo.cues))
    assert word_error_rate(said, shown) <= 0.05


def test_a_recogniser_hears_the_chosen_words_in_the_film(promo: Promo, tmp_path: Path) -> None:
    said = plain_words(" ".join(word.text for words in promo.said for word in words))
    assert word_error_rate(said, recognised(promo.film, tmp_path)) <= 0.15


def test_the_title_of_the_brief_can_be_read_in_a_frame(promo: Promo) -> None:
    """The letters of the title are where they would be drawn, and those of other titles are not."""
    assert promo.decision["title"] == TITLE
    frame = luma_at(promo.film, 1.0)
    likeness = {}
    for text in (TITLE, "Free to Shave", "Free to Watch", "Big Buck Bunny"):
        letters = title_ink(text)
        rows, columns = np.nonzero(letters > 128)
        box = np.s_[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
        shown, letters = frame[box], letters[box]
        likeness[text] = float(np.corrcoef(letters.ravel(), shown.ravel())[0, 1])
        if text == TITLE:
            contrast = np.percentile(shown[letters > 240], 5) - np.percentile(
                shown[letters < 15], 95
            )
    assert contrast > 60
    assert likeness[TITLE] > 0.8
    assert sorted(likeness.values())[-2] < 0.75


def title_ink(text: str) -> NDArray[np.float64]:
    """Return how white a title makes each pixel of the frame, 0 to 255."""
    drawn = TextPainter().paint(OverlaySpan("title", text, 0, 60), 1280, 720)
    pixels = np.asarray(drawn.image.convert("RGBA"), dtype=np.float64)
    ink = np.zeros((720, 1280))
    height, width = pixels.shape[:2]
    ink[drawn.y : drawn.y + height, drawn.x : drawn.x + width] = (
        pixels[..., 0] * pixels[..., 3] / 255
    )
    return ink


def test_the_film_is_as_loud_as_others_and_does_not_clip(promo: Promo) -> None:
    found = ffmpeg_says(promo.film, "-af", "ebur128=peak=true:framelog=quiet", "-vn")
    (loudness,) = re.findall(r"I:\s+(-?[\d.]+) LUFS", found)
    (peak,) = re.findall(r"Peak:\s+(-?[\d.]+) dBFS", found)
    assert float(loudness) == pytest.approx(-14, abs=0.5)
    assert float(peak) <= -1.0
    assert promo.run.steps["video_compile"]["notes"] == []


def test_the_sound_fades_at_its_edges_and_does_not_click_at_its_cuts(promo: Promo) -> None:
    film = sound(promo.film)
    assert np.abs(film[:48]).max() < 0.003
    end = round(promo.seconds * RATE_HZ)
    assert np.abs(film[end - 48 : end]).max() < 0.003
    joints = np.cumsum([end - start for start, end in promo.spans])[:-1]
    for joint in joints:
        at = round(float(joint) * RATE_HZ)
        assert np.abs(np.diff(film[at - 48 : at + 48])).max() < 0.01


def test_the_report_says_why_each_cut_was_chosen(promo: Promo) -> None:
    rows = [
        [cell.strip() for cell in line.strip("| \n").split(" | ")]
        for line in promo.report.splitlines()
        if re.match(r"\| c\d+ ", line)
    ]
    cuts = promo.decision["cuts"]
    assert promo.report.startswith(f"# {TITLE}\n")
    assert [row[0] for row in rows] == [cut["id"] for cut in cuts]
    assert [row[-1] for row in rows] == [cut["reason"] for cut in cuts]
    assert all(len(row[-1].split()) >= 4 for row in rows)
    for row, words in zip(rows, promo.said, strict=True):
        said = plain_words(" ".join(word.text for word in words))
        assert word_error_rate(said, plain_words(row[3])) <= 0.1


def test_the_second_run_executes_no_step_and_no_ffmpeg(promo: Promo, home: PromoHome) -> None:
    assert promo.run.executed == STEPS
    assert promo.run.ffmpeg_count > 5
    again = home.run("sample")
    assert {step["cache_reason"] for step in again.steps.values()} == {"hit"}
    assert again.executed == set()
    assert again.ffmpeg_count == 0
    key = "output_storage_key"
    assert again.steps["video_compile"][key] == promo.run.steps["video_compile"][key]
