"""Renders compositions of a sandbox with a Remotion that the user installed.

    renderer = RemotionRenderer(template, FfmpegLocator(None, None))
    renderer.render(tree, request, workdir, progress=progress, cancelled=cancelled)

Node bundles the project and a browser draws the frames, both contained and without a network (see
contained_exec.py and remotion_render.cjs); ffmpeg makes the film of them: H.264, limited range,
BT.709, with the composition's own size and rate. A film has no sound.

To be extended with: tests/integration/test_remotion_renderer.py.

Source: specification V14, E; risks R8.
"""

import json
import os
import tempfile
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from reprise.errors import Cancelled as RunCancelled
from reprise.errors import MediaError, ToolFailed
from reprise.model.sandbox import CompositionRequest, RenderedComposition
from reprise.ports import Cancelled, Progress
from resources.contained_process import ContainedEnd, Containment, run_contained
from resources.ffmpeg import FfmpegLocator
from resources.ffmpeg_runner import FfmpegRunner, RunnerLimits
from resources.film_verify import decoded_frames
from resources.filter_graph import frames_graph
from resources.remotion_install import RemotionInstall, find_install
from resources.remotion_job import RemotionLimits, RenderTalk, check_request, entry_file, film_name

CRF = 14
"""Quality of the film: what is drawn has hard edges, and is encoded again in a later film."""
THREADS = 2
READABLE = tuple(
    Path(path)
    for path in (
        *("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/opt", "/proc", "/sys"),
        *("/dev/random", "/dev/urandom", "/var/cache/fontconfig"),
        *("/etc/alternatives", "/etc/chromium", "/etc/chromium.d", "/etc/fonts", "/etc/group"),
        *("/etc/host.conf", "/etc/hosts", "/etc/ld.so.cache", "/etc/localtime"),
        *("/etc/nsswitch.conf", "/etc/passwd", "/etc/ssl"),
    )
)
"""What Node and a browser need of a Linux system to start; no one's home is among it."""
_SCRIPT = Path(__file__).with_name("remotion_render.cjs")
_BUNDLED, _OPENED, _DRAWN = 0.1, 0.2, 0.9
"""Share of the work that is done after each part."""


@dataclass(frozen=True)
class RemotionRenderer:
    """Renders compositions; an adapter of `reprise.ports.CompositionRenderer`.

    Args:
        template: Folder where the user ran `npm ci`.
        ffmpeg: Finds ffmpeg when a film is to be made.
        ffmpeg_limits: Bounds of ffmpeg's process.
        node: Node's program; None looks on PATH.
        browser: The browser's program; None looks on PATH.
        limits: Bounds of one call.
        contained: False leaves out what not every kernel has; see `Containment`.
    """

    template: Path
    ffmpeg: FfmpegLocator
    ffmpeg_limits: RunnerLimits = field(default_factory=RunnerLimits)
    node: str | None = None
    browser: str | None = None
    limits: RemotionLimits = field(default_factory=RemotionLimits)
    contained: bool = True

    def render(
        self,
        tree: Path,
        request: CompositionRequest,
        workdir: Path,
        *,
        progress: Progress,
        cancelled: Cancelled,
    ) -> RenderedComposition:
        """Render into `workdir`; `tree` is a copy of the sandbox.

        Raises:
            BadInput: Something has to be installed, or the request cannot be met.
            ToolFailed: The composition does not build or render, or takes more than it may.
            Cancelled: The run is being stopped; no process is left.
        """
        install = find_install(self.template, node=self.node, browser=self.browser)
        check_request(request)
        workdir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=workdir, prefix="remotion-") as name:
            folder = Path(name).resolve()
            talk = self._draw(install, tree.resolve(), request, folder, progress, cancelled)
            film = self._film(talk, folder / "work" / "frames", folder, progress, cancelled)
            target = workdir / film_name(request)
            film.replace(target)
        versions = {**install.versions, "ffmpeg": self.ffmpeg.binary().version}
        return RenderedComposition(
            file_name=target.name,
            width=talk.width,
            height=talk.height,
            frame_count=talk.frames,
            duration_seconds=float(talk.frames / talk.rate),
            versions=versions,
        )

    def _draw(
        self,
        install: RemotionInstall,
        tree: Path,
        request: CompositionRequest,
        folder: Path,
        progress: Progress,
        cancelled: Cancelled,
    ) -> RenderTalk:
        """Have the frames drawn, as PNG files in `work/frames`."""
        limits = self.limits
        (folder / "work").mkdir()
        job = folder / "job.json"
        job.write_text(
            json.dumps(
                {
                    "packages": str(install.packages),
                    "tree": str(tree),
                    "entry": str(entry_file(tree)),
                    "folder": str(folder / "work"),
                    "browser": str(install.browser),
                    "chromeMode": install.chrome_mode,
                    "heapMegabytes": limits.heap_mebibytes,
                    "frameMilliseconds": round(limits.frame_seconds * 1000),
                    "pages": 1,
                    "id": request.composition_id,
                    "inputProps": dict(request.input_props),
                    "startFrame": request.start_frame,
                    "endFrame": request.end_frame,
                    "limits": limits.as_json(),
                }
            )
        )
        needed = (tree, install.packages, self.template.resolve() / "package.json", _SCRIPT)
        programs = (install.node.resolve(), install.browser.resolve().parent)
        box = Containment(
            folder=folder,
            readable=(*READABLE, *needed, *programs),
            seconds=limits.seconds,
            memory_bytes=limits.memory_bytes,
            disk_bytes=limits.disk_bytes,
            shut_files=self.contained,
            own_network=self.contained,
        )
        places = {tree: "", install.packages: "node_modules/", folder: ""}
        talk = RenderTalk(progress, _spans(), places)
        command = (
            str(install.node.resolve()),
            f"--max-old-space-size={limits.heap_mebibytes}",
            str(_SCRIPT),
            str(job),
        )
        end = run_contained(command, box, on_line=talk.hear, doing=talk.doing, cancelled=cancelled)
        _check_end(end, talk)
        return talk

    def _film(
        self,
        talk: RenderTalk,
        frames: Path,
        folder: Path,
        progress: Progress,
        cancelled: Cancelled,
    ) -> Path:
        """Make the film of the frames, and decode it once."""
        pictures = sorted(frames.glob("frame-*.png"))
        if len(pictures) != talk.frames:
            message = f"Of {talk.frames} frames {len(pictures)} were drawn; render it again"
            raise ToolFailed(message)
        for number, picture in enumerate(pictures):
            picture.rename(frames / f"{number:06d}.png")
        graph, film, rate = frames_graph(), folder / "film.mp4", talk.rate
        FfmpegRunner(self.ffmpeg.binary(), self.ffmpeg_limits).run(
            [
                *("-protocol_whitelist", "file", "-format_whitelist", "image2"),
                *("-f", "image2", "-framerate", f"{rate.numerator}/{rate.denominator}"),
                *("-max_pixels", str(self.limits.pixels), "-c:v", "png", "-i", "file:%06d.png"),
                *graph.args(),
                *_encoder(rate),
                f"file:{film}",
            ],
            cwd=frames,
            progress=lambda text, share: progress(text, _after(_DRAWN, share)),
            cancelled=cancelled,
            duration_seconds=float(talk.frames / rate),
            purpose="encoding the composition",
        )
        found = _decoded(film, cancelled)
        if found != talk.frames:
            message = f"The film has {found} frames instead of {talk.frames}"
            raise ToolFailed(message)
        with film.open("rb") as stream:
            os.fsync(stream.fileno())
        return film


def _spans() -> dict[str, tuple[float, float]]:
    return {
        "bundling": (0.0, _BUNDLED),
        "opening": (_BUNDLED, _OPENED),
        "frames": (_OPENED, _DRAWN),
    }


def _after(done: float, share: float | None) -> float | None:
    return None if share is None else done + (1 - done) * share


def _encoder(rate: Fraction) -> tuple[str, ...]:
    return (
        *("-an", "-sn", "-dn", "-c:v", "libx264", "-preset", "medium", "-crf", str(CRF)),
        *("-profile:v", "high", "-pix_fmt", "yuv420p", "-threads", str(THREADS)),
        *("-flags:v", "+bitexact", "-fflags", "+bitexact", "-fps_mode", "passthrough"),
        *("-color_primaries", "bt709", "-color_trc", "bt709", "-colorspace", "bt709"),
        *("-color_range", "tv", "-video_track_timescale", str(rate.numerator * 100)),
        *("-map_metadata", "-1", "-movflags", "+faststart", "-f", "mp4"),
    )


def _decoded(film: Path, cancelled: Cancelled) -> int:
    try:
        return decoded_frames(film, cancelled)
    except RunCancelled:
        raise
    except MediaError as error:
        message = f"The film that was made of the composition does not decode: {error}"
        raise ToolFailed(message) from error


def _check_end(end: ContainedEnd, talk: RenderTalk) -> None:
    """Raise what went wrong, if something did."""
    talk.raise_failure()
    if end.returncode != 0 or not talk.finished:
        last = [line.strip() for line in end.said.splitlines() if line.strip()][-3:]
        message = (
            f"Node ended with exit code {end.returncode} while {talk.doing()}: "
            f"{talk.relative('; '.join(last)) or 'it said nothing'}"
        )
        raise ToolFailed(message)
