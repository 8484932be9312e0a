"""The UI's pages as a person sees them, in a headless Chromium.

Source: specification D8, D20.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webdriver import WebDriver

from tests.acceptance.ui_process import SECONDS_MAX, Ui, UiHome, opened_ui
from tests.media_files import scenes

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STEPS = ["request", "s01_look", "s02_room", "s03_film"]
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--window-size=1400,1400",
)


@pytest.fixture(scope="module")
def ui(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ui]:
    root = tmp_path_factory.mktemp("pages")
    footage = scenes(root / "scenes.mp4", [("testsrc2", 4.0), ("mandelbrot", 4.0)])
    home = UiHome(root)
    home.add("first", footage)
    home.add("second", footage)
    with opened_ui(home) as opened:
        yield opened


@pytest.fixture(scope="module")
def backfill(ui: Ui) -> str:
    """The id of a finished backfill of two projects."""
    backfill_id = ui.backfill("cut", STEPS, ["first", "second"])
    assert ui.backfill_ended(backfill_id) == "COMPLETED_SUCCESS"
    return backfill_id


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[WebDriver]:
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    yield driver
    driver.quit()


def shown(browser: WebDriver, *texts: str) -> str:
    """Wait until the page shows all of these texts; return all that it shows."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        page = browser.find_element(By.TAG_NAME, "body").text
        missing = [text for text in texts if text not in page]
        if not missing:
            return page
        assert time.monotonic() < deadline, f"{missing} never shown in:\n{page}"
        time.sleep(0.2)


def test_the_asset_graph_shows_every_step(ui: Ui, backfill: str, browser: WebDriver) -> None:
    browser.get(f"{ui.address}/locations/reprise/asset-groups/cut/lineage")
    page = shown(browser, *STEPS)
    assert "Join the" not in page


def test_a_steps_page_shows_its_figures_and_its_pictures(
    ui: Ui, backfill: str, browser: WebDriver
) -> None:
    browser.get(f"{ui.address}/assets/cut/s01_look?view=partitions&partition=first")
    shown(browser, "footage", "scenes.mp4", "320x180", "cache_reason", "cache_key")
    browser.find_element(By.XPATH, "//*[contains(text(), 'Show Markdown')]").click()
    shown(browser, "Close")
    (picture,) = browser.find_elements(By.CSS_SELECTOR, "img[alt='shots of scenes.mp4']")
    assert str(picture.get_property("naturalWidth")) == "480"


def test_the_films_page_shows_where_the_film_is(ui: Ui, backfill: str, browser: WebDriver) -> None:
    browser.get(f"{ui.address}/assets/cut/s03_film?view=partitions&partition=second")
    shown(browser, "film.mp4", "edit-report.md", "/objects/projects/second/artifacts/")


def test_a_finished_backfill_of_two_projects(ui: Ui, backfill: str, browser: WebDriver) -> None:
    browser.get(f"{ui.address}/runs/b/{backfill}")
    page = shown(browser, "Succeeded", "first", "second", "s03_film")
    assert page.count("100% completed") == 4
