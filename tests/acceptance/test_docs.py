"""The documentation is true: its commands run, its workflows are valid, its links lead somewhere.

A block that cannot run here is marked on its page with the reason, and listed in `LEFT_OUT`: a new
one is a decision.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from resources.definition_files import check_file
from tests.acceptance.command_line import ROOT
from tests.acceptance.docs_reader import Reader, blocks
from tests.acceptance.warm_start import WarmStart

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
RUN_PAGES = [page for page in PAGES if any(block.language == "bash" for block in blocks(page))]

LEFT_OUT = {
    "README.md: bin/demo",
    "README.md: .venv/bin/reprise ui",
    "README.md: bin/check",
    "docs/guide/first-film.md: bin/demo",
    "docs/guide/first-film.md: reprise run quick-win-promo holiday --cache refresh",
    "docs/guide/first-film.md: reprise ui",
    "docs/operations/inference-api.md: reprise api --port 8420",
    "docs/guide/motion-titles.md: (cd workflows/templates/motion-titles && npm ci)",
    "docs/guide/local-model.md: .venv/bin/python examples/local_model.py",
    "docs/guide/local-model.md: export REPRISE_PROVIDERS__LOCAL__BASE_URL=http://127.0.0.1:8080/v1",
    "docs/guide/local-model.md: .venv/bin/reprise run quick-win-promo open-film --provider local",
    "docs/guide/local-model.md: .venv/bin/python examples/local_model.py --weights my-model.gguf "
    "--context-tokens 32768 --threads 4",
    "docs/guide/use-a-model.md: read -rs REPRISE_PROVIDERS__LOCAL__API_KEY && export "
    "REPRISE_PROVIDERS__LOCAL__API_KEY",
}
"""Page and first line of each block that is not run; it takes minutes, serves for ever or waits."""

ENDPOINT = "http://127.0.0.1:8080/v1"
"""What stands on the page for the reader's own model server."""


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


class Model(BaseHTTPRequestHandler):
    """Answers every question with the same headline."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        content = json.dumps({"headline": "Come with us", "reason": "It is in the brief."})
        message = {"role": "assistant", "content": content}
        answer = {
            "id": "1",
            "object": "chat.completion",
            "model": asked["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
        }
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def model_endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def reader(tmp_path: Path, warm: WarmStart) -> Iterator[Reader]:
    with Reader(tmp_path, warm) as made:
        yield made


def test_the_readme_makes_a_film_of_the_readers_own_footage(reader: Reader) -> None:
    printed = reader.follow(ROOT / "README.md")
    assert "quick-win-promo on holiday: succeeded" in printed
    assert (reader.clone / "out" / "film.mp4").stat().st_size > 10_000


def test_the_first_guide_leads_to_a_film_and_explains_the_second_run(reader: Reader) -> None:
    printed = reader.follow(ROOT / "docs/guide/first-film.md")
    assert (reader.clone / "out" / "film.mp4").stat().st_size > 10_000
    assert "7 of 8 steps came from the cache" in printed
    assert "+Prefer a question over a claim, and a claim over a greeting." in printed
    assert "compared with the result of run" in printed


def test_a_reader_makes_title_cards_and_looks_into_the_sandbox(reader: Reader) -> None:
    printed = reader.follow(ROOT / "docs/guide/motion-titles.md")
    assert '"title": "Holiday by the sea"' in (reader.clone / "titles/s05_plan.json").read_text()
    assert '+    title: "Holiday by the sea",' in printed
    assert "4 of 8 steps came from the cache" in printed
    data = reader.clone / "my-titles/src/cards.ts"
    assert '    title: "Holiday by the sea",' in data.read_text()


def test_a_reader_writes_a_workflow_and_lets_a_model_answer(reader: Reader) -> None:
    printed = reader.follow(ROOT / "docs/guide/write-a-workflow.md")
    assert '"shot": "v1.s00' in printed
    with model_endpoint() as address:
        printed = reader.follow(ROOT / "docs/guide/use-a-model.md", {ENDPOINT: address})
    assert '"headline": "Come with us"' in printed
    assert "1 of 1 steps came from the cache" in printed
    assert "120 tokens and $0.0000 saved" in printed
    replayed = printed.rpartition("== use-a-model.md")[2]
    assert "succeeded" in replayed
    assert "nothing came from the cache" in replayed
    assert '"headline": "Written beforehand"' in replayed


@pytest.mark.parametrize(
    "name",
    [
        "docs/operations/inference-api.md",
        "docs/operations/run-it.md",
        "docs/reference/settings.md",
    ],
)
def test_the_commands_of_a_page_run(name: str, reader: Reader) -> None:
    reader.environment["PATH"] = f"{reader.clone / '.venv/bin'}:{reader.environment['PATH']}"
    reader.follow(ROOT / name)


def test_every_page_with_commands_is_followed_by_a_test() -> None:
    assert {name_of(page) for page in RUN_PAGES} == {
        "README.md",
        "docs/guide/first-film.md",
        "docs/guide/write-a-workflow.md",
        "docs/guide/motion-titles.md",
        "docs/guide/use-a-model.md",
        "docs/operations/inference-api.md",
        # Its commands are run by test_local_model.py.
        "docs/guide/local-model.md",
        "docs/operations/run-it.md",
        "docs/reference/settings.md",
    }


def test_few_blocks_are_left_out_and_each_is_known() -> None:
    found = {
        f"{name_of(page)}: {block.text.splitlines()[0]}"
        for page in PAGES
        for block in blocks(page)
        if block.left_out is not None
    }
    assert found == LEFT_OUT


def test_every_workflow_that_is_shown_is_valid(reader: Reader) -> None:
    shown = [
        (page, block) for page in PAGES for block in blocks(page) if block.language == "markdown"
    ]
    for _, block in shown:
        if block.file is not None:
            (reader.clone / block.file).write_text(block.text, encoding="utf-8")
    problems: list[str] = []
    count = 0
    for page in PAGES:
        for block in blocks(page):
            if block.language != "yaml":
                continue
            assert isinstance(yaml.safe_load(block.text), dict), f"{page}:{block.line}"
            if re.search("^steps:", block.text, re.MULTILINE):
                count += 1
                path = reader.clone / "workflows" / f"shown-{count}.yaml"
                path.write_text(block.text, encoding="utf-8")
                problems += [f"{name_of(page)}:{block.line}: {line}" for line in check_file(path)]
    assert problems == []
    assert count >= 3


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"^( *)```.*?^\1```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"[a-z]+:", target):
            continue  # Outside the repository; nothing is fetched here.
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            broken.append(target)
    assert broken == []


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
