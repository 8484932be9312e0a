"""Compositions rendered for real: with Node, a browser and the template's own Remotion."""

import re
import shutil
import socket
import struct
import zlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Protocol

import av
import numpy as np
import pytest

from reprise.errors import BadInput, Cancelled, ToolFailed
from reprise.model.sandbox import CompositionRequest, RenderedComposition
from resources.ffmpeg import FfmpegLocator
from resources.remotion_job import RemotionLimits
from resources.remotion_renderer import RemotionRenderer
from tests.media_files import never_cancelled
from tests.remotion_project import TEMPLATE, left_over, remotion_project

pytestmark = pytest.mark.remotion

Reports = list[tuple[str, float | None]]


class Render(Protocol):
    def __call__(
        self,
        tree: Path,
        composition_id: str = ...,
        *,
        limits: RemotionLimits = ...,
        contained: bool = ...,
        reports: Reports | None = ...,
        cancelled: Callable[[], bool] = ...,
        request: Mapping[str, object] = ...,
    ) -> RenderedComposition: ...


@pytest.fixture
def titles(tmp_path: Path) -> Path:
    return shutil.copytree(
        TEMPLATE, tmp_path / "tree", ignore=shutil.ignore_patterns("node_modules")
    )


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def render(remotion_template: Path, out: Path) -> Render:
    def run(
        tree: Path,
        composition_id: str = "Film",
        *,
        limits: RemotionLimits | None = None,
        contained: bool = True,
        reports: Reports | None = None,
        cancelled: Callable[[], bool] = never_cancelled,
        request: Mapping[str, object] | None = None,
    ) -> RenderedComposition:
        renderer = RemotionRenderer(
            remotion_template,
            FfmpegLocator(None, None),
            limits=limits or RemotionLimits(seconds=240.0),
            contained=contained,
        )
        asked = {"composition_id": composition_id, **(request or {})}
        heard: Reports = [] if reports is None else reports
        try:
            return renderer.render(
                tree,
                CompositionRequest.model_validate(asked),
                out,
                progress=lambda text, share: heard.append((text, share)),
                cancelled=cancelled,
            )
        finally:
            assert left_over(out) == []
            # Either the film alone, or nothing.
            assert [path.suffix for path in out.glob("*")] in ([], [".mp4"])

    return run


class ListeningServer:
    """A port of this machine that counts who comes."""

    def __enter__(self) -> "ListeningServer":
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def visits(self) -> int:
        count = 0
        while True:
            try:
                self._socket.accept()[0].close()
            except BlockingIOError:
                return count
            count += 1


def yuv(film: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Return luma, blue and red difference of each frame, at half size."""
    planes = []
    with av.open(str(film)) as container:
        for frame in container.decode(video=0):
            y, u, v = (
                np.frombuffer(bytes(plane), np.uint8).reshape(plane.height, plane.line_size)
                for plane in frame.planes
            )
            width, height = frame.width // 2, frame.height // 2
            luma = y[: height * 2 : 2, : width * 2 : 2]
            planes.append(np.stack([luma, u[:height, :width], v[:height, :width]]))
    return np.stack(planes)


def png(red: int, green: int, blue: int) -> bytes:
    """Return a picture of 8x8 pixels of one colour."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    rows = (b"\0" + bytes((red, green, blue)) * 8) * 8
    header = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


PATCHES = """<AbsoluteFill style={{flexDirection: "row"}}>
  <div style={{width: 80, height: 180, backgroundColor: "rgb(200,30,60)"}} />
  <div style={{width: 80, height: 180, backgroundColor: "rgb(128,128,128)"}} />
  <div style={{width: 80, height: 180, backgroundColor: "rgba(255,255,255,0.5)"}} />
  <Img src={staticFile("blue.png")} style={{width: 80, height: 180}} />
</AbsoluteFill>"""

# Every file that some program of the Node world would execute when it finds it.
TRAP = (
    'require("fs").writeFileSync(process.env.HOME + "/../../../trapped", "x"); module.exports = {};'
)
TRAPS: dict[str, str | bytes] = {
    "package.json": (
        '{"name": "x", "browserslist": ["extends ./webpack.config.js"], "scripts": '
        '{"prepare": "touch ../trapped", "postinstall": "touch ../trapped"}}'
    ),
    **dict.fromkeys(
        (
            "remotion.config.ts",
            "remotion.config.js",
            "webpack.config.js",
            "postcss.config.js",
            "tailwind.config.js",
            "babel.config.js",
            ".babelrc.js",
        ),
        TRAP,
    ),
    "tsconfig.json": '{"extends": "../../../../etc/passwd"}',
    ".env": "TRAP=1\n",
}


def test_a_film_has_the_size_rate_length_and_colours_of_its_composition(
    render: Render, tmp_path: Path, out: Path
) -> None:
    """And nothing that lies in the sandbox is executed on the way."""
    files = {**TRAPS, "public/blue.png": png(0, 0, 255)}
    tree = remotion_project(tmp_path, body=PATCHES, files=files, frames=15, rate="29.97")
    reports: Reports = []
    film = render(tree, reports=reports)
    assert (film.width, film.height, film.frame_count) == (320, 180, 15)
    assert film.duration_seconds == pytest.approx(0.5005)
    assert set(film.versions) >= {"remotion", "react", "node", "chromium", "ffmpeg"}
    path = out / film.file_name
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert (stream.average_rate, stream.frames) == (Fraction(30000, 1001), 15)
        frame = next(container.decode(video=0))
        # Limited range, and BT.709 matrix, primaries and transfer.
        tags = (frame.color_range, frame.colorspace, frame.color_primaries, frame.color_trc)
        assert tags == (1, 1, 1, 1)
    pictures = yuv(path)
    assert len(pictures) == 15
    middle = pictures[7][:, 45, :]
    expected = {20: (75, 124, 201), 60: (126, 128, 128), 100: (126, 128, 128), 140: (32, 240, 118)}
    for x, colour in expected.items():
        assert np.abs(middle[:, x].astype(int) - colour).max() <= 2, (x, middle[:, x])
    shares = [share for _, share in reports if share is not None]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert any(text.startswith("drawing frame") for text, _ in reports)
    assert not list(tmp_path.rglob("trapped"))


def test_the_template_shows_what_the_props_say_in_the_frames_asked_for(
    render: Render, titles: Path, out: Path
) -> None:
    request = {"start_frame": 40, "end_frame": 42}
    card = {"title": "Harbour morning " * 5, "subtitle": "A short film " * 9, "seconds": 3}
    pictures = []
    for props in ({}, {"card": card}):
        film = render(titles, "TitleCard", request={"input_props": props, **request})
        assert (film.frame_count, film.file_name) == (3, "TitleCard-frames-40-42.mp4")
        pictures.append(yuv(out / film.file_name))
    # Light letters on a dark ground: more of them, and none at the edges.
    plain, long = ((each[1][0] > 120).mean() for each in pictures)
    assert 0 < plain < long
    assert (pictures[1][:, 0, :, :40] < 60).all()
    assert (pictures[1][:, 0, :, -40:] < 60).all()


def test_an_unknown_composition_is_answered_with_the_known_ones(
    render: Render, titles: Path
) -> None:
    with pytest.raises(BadInput, match="there are: TitleCard, LowerThird"):
        render(titles, "Title")


@pytest.mark.parametrize(
    ("frames", "size", "wanted", "message"),
    [
        (3, (321, 180), {}, "have to be even"),
        (3, (20_000, 20_000), {}, "more than 8294400 pixels"),
        (10**9, (320, 180), {}, "9000 at most"),
        (3, (320, 180), {"end_frame": 3}, "frames 0 to 2"),
    ],
    ids=["odd", "huge", "endless", "range"],
)
def test_what_is_too_much_is_refused(
    render: Render,
    tmp_path: Path,
    frames: int,
    size: tuple[int, int],
    wanted: dict[str, object],
    message: str,
) -> None:
    tree = remotion_project(tmp_path, frames=frames, size=size)
    with pytest.raises(BadInput, match=message):
        render(tree, request=wanted)


def test_an_error_of_the_build_says_file_and_line_of_the_sandbox_alone(
    render: Render, tmp_path: Path, remotion_template: Path
) -> None:
    files = {"src/broken.tsx": "export const a = 1;\nexport const b = <div>;\n"}
    tree = remotion_project(tmp_path, head='import "./broken";', files=files)
    with pytest.raises(ToolFailed, match=r"src/broken\.tsx:3:0: ERROR: Unex") as caught:
        render(tree)
    assert str(tmp_path) not in str(caught.value)
    assert str(remotion_template) not in str(caught.value)


def test_an_error_of_the_component_says_frame_file_and_line(render: Render, tmp_path: Path) -> None:
    files = {
        "src/late.ts": "export const late = (frame: number) => {\n"
        '  if (frame === 2) {\n    throw new Error("no boat at " + frame);\n  }\n};\n'
    }
    head, code = 'import {late} from "./late";', "late(frame);"
    tree = remotion_project(tmp_path, head=head, code=code, files=files, frames=4)
    with pytest.raises(ToolFailed, match="no boat at 2") as caught:
        render(tree)
    assert str(caught.value).startswith("Frame 2 does not render (at src/late.ts:3): no boat")
    assert not re.search(r"https?://|/tmp/", str(caught.value))


def test_a_frame_that_is_never_released_ends_with_its_own_time(
    render: Render, tmp_path: Path
) -> None:
    code = 'React.useState(() => delayRender("waiting for the tide"));'
    tree = remotion_project(tmp_path, code=code)
    with pytest.raises(ToolFailed, match="waiting for the tide"):
        render(tree, limits=RemotionLimits(seconds=240.0, frame_seconds=7.0))


def test_a_loop_without_end_is_stopped(render: Render, tmp_path: Path) -> None:
    tree = remotion_project(tmp_path, code="if (frame === 1) { while (true); }")
    with pytest.raises(ToolFailed, match=r"stopped while|does not render"):
        render(tree, limits=RemotionLimits(seconds=40.0, frame_seconds=120.0))


def test_memory_without_end_is_stopped(render: Render, tmp_path: Path) -> None:
    code = (
        "const kept: Uint8Array[] = [];"
        "while (frame === 1) { kept.push(new Uint8Array(2 ** 26).fill(1)); }"
    )
    tree = remotion_project(tmp_path, code=code)
    limits = RemotionLimits(seconds=120.0, memory_bytes=1500 * 2**20)
    with pytest.raises(ToolFailed, match=r"more than 1500 MiB of memory|does not render"):
        render(tree, limits=limits)


def test_stopping_leaves_neither_process_nor_file(
    render: Render, tmp_path: Path, out: Path
) -> None:
    tree = remotion_project(tmp_path, frames=3000)
    reports: Reports = []
    with pytest.raises(Cancelled, match="drawing frame"):
        render(
            tree,
            reports=reports,
            cancelled=lambda: any(text.startswith("drawing") for text, _ in reports),
        )
    assert list(out.iterdir()) == []


OUTSIDE = {
    "script": 'import x from "../../../outside/secret.js"; console.log(x);',
    "json": 'import x from "../../../outside/secret.json"; console.log(x);',
    "absolute": 'import x from "OUTSIDE/secret.js"; console.log(x);',
    "address": 'import x from "file://OUTSIDE/secret.js"; console.log(x);',
    "picture": 'const x = new URL("../../../outside/secret.png", import.meta.url); console.log(x);',
    "style": 'import "./outside.css";',
    "folder": 'const x = require.context("../../../outside", true, /.*/); console.log(x);',
    "computed": "export const x = (y: string) => import(`../../../outside/${y}.js`);",
    "worker": 'new Worker(new URL("../../../outside/secret.js", import.meta.url));',
    "loader": 'import x from "!!./loader.js!./data.txt"; console.log(x);',
    "matched": 'import x from "./a.js!=!./loader.js!./data.txt"; console.log(x);',
    "data": 'import x from "data:text/javascript,export default 1"; console.log(x);',
}


@pytest.mark.parametrize("head", OUTSIDE.values(), ids=OUTSIDE)
def test_an_import_reaches_neither_outside_files_nor_loaders(
    render: Render, tmp_path: Path, head: str
) -> None:
    """Without what the kernel contains: the bundler refuses alone."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.js").write_text("export default 'secret';")
    (outside / "secret.json").write_text('{"a": "secret"}')
    (outside / "secret.png").write_bytes(png(1, 2, 3))
    (outside / "secret.css").write_text("body {color: red}")
    loader = f'require("fs").writeFileSync({str(tmp_path / "executed")!r}, "");' + (
        "module.exports = (text) => text;"
    )
    files = {
        "src/loader.js": loader,
        "src/data.txt": "export default 1;",
        "src/outside.css": '@import "../../../outside/secret.css";',
    }
    head = head.replace("OUTSIDE", str(outside)).replace("../../../outside", "../../outside")
    files["src/outside.css"] = files["src/outside.css"].replace("../../../", "../../")
    tree = remotion_project(tmp_path, head=head, files=files)
    with pytest.raises(ToolFailed, match=r"outside of the sandbox|cannot name a loader|only files"):
        render(tree, contained=False)
    assert not (tmp_path / "executed").exists()


def test_packages_in_the_sandbox_are_refused(render: Render, tmp_path: Path) -> None:
    tree = remotion_project(tmp_path, files={"node_modules/remotion/index.js": TRAP})
    with pytest.raises(ToolFailed, match="not read from the sandbox"):
        render(tree)


def test_a_link_to_outside_is_refused(render: Render, tmp_path: Path) -> None:
    tree = remotion_project(tmp_path)
    (tree / "public").symlink_to(tmp_path)
    with pytest.raises(ToolFailed, match="'public' is neither a file nor a folder"):
        render(tree)


@pytest.mark.parametrize("contained", [True, False], ids=["contained", "on any kernel"])
def test_nothing_is_fetched_from_the_machine_or_the_network(
    render: Render, tmp_path: Path, contained: bool
) -> None:
    """Nor does a comment run that webpack would evaluate, and that gets out of where it is."""
    code = """
    const [handle] = React.useState(() => delayRender());
    React.useEffect(() => {
      const port = PORT;
      const ways = [`http://127.0.0.1:${port}/a`, `http://localhost:${port}/b`, `http://[::1]:${port}/c`,
        `/proxy?src=http://127.0.0.1:${port}/d&time=0&transparent=false&toneMapped=true`,
        "file:///etc/hostname"];
      const socket = new Promise((done) => {
        const made = new WebSocket(`ws://127.0.0.1:${port}/e`);
        made.onopen = () => done("open"); made.onerror = () => done("");
      });
      const read = (way: string) => fetch(way).then((r) => (r.ok ? "read " + way : ""), () => "");
      Promise.all([...ways.map(read), socket]).then((all) => {
        const told = all.filter(Boolean).join();
        if (told) { throw new Error(told); }
        continueRender(handle);
      });
    }, [handle]);
    """
    body = """<AbsoluteFill style={{backgroundColor: "#808080"}}>
      <iframe src="http://127.0.0.1:PORT/g" /><link rel="prefetch" href="http://127.0.0.1:PORT/h" />
    </AbsoluteFill>"""
    escape = (
        "this.constructor.constructor('return process')().mainModule.require('fs')"
        f".writeFileSync('{tmp_path}/executed', '')"
    )
    head = f'export const lazy = () => import(/* webpackChunkName: {escape} */ "./lazy");'
    with ListeningServer() as server:
        tree = remotion_project(
            tmp_path,
            head=head,
            code=code.replace("PORT", str(server.port)),
            body=body.replace("PORT", str(server.port)),
            files={"src/lazy.ts": "export const a = 1;"},
            frames=2,
        )
        assert render(tree, contained=contained).frame_count == 2
        assert server.visits() == 0
    assert not (tmp_path / "executed").exists()


def test_what_remotion_fetches_itself_is_not_fetched(render: Render, tmp_path: Path) -> None:
    with ListeningServer() as server:
        body = f'<Html5Audio src="http://127.0.0.1:{server.port}/a.mp3" />'
        tree = remotion_project(tmp_path, head='import {Html5Audio} from "remotion";', body=body)
        with pytest.raises(ToolFailed, match="nothing can be fetched"):
            render(tree, contained=False)
        assert server.visits() == 0
