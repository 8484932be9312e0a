"""The settings of the Inference API: what is wrong is told at the start, and no secret with it."""

import traceback

import pytest

from reprise.errors import SettingsInvalid
from resources.settings import Settings, load_settings

PREFIX = "REPRISE_INFERENCE_API__"
KEY = "a-signing-key-of-at-least-32-bytes"


def problem(monkeypatch: pytest.MonkeyPatch, **values: str) -> str:
    for name, value in values.items():
        monkeypatch.setenv(PREFIX + name, value)
    with pytest.raises(SettingsInvalid) as caught:
        load_settings()
    shown = "".join(traceback.format_exception(caught.value))
    for name, value in values.items():
        assert name == "URL" or value not in shown
    return str(caught.value)


def test_a_url_without_a_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    text = problem(monkeypatch, URL="http://127.0.0.1:8420")
    assert text.startswith(
        "REPRISE_INFERENCE_API__SIGNING_KEY: is required with REPRISE_INFERENCE_API__URL"
    )


@pytest.mark.parametrize("name", ["SIGNING_KEY", "PREVIOUS_SIGNING_KEY"])
def test_a_short_key_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    text = problem(monkeypatch, **{name: "only-31-bytes-of-secret-abcdefg"})
    assert text.startswith(f"REPRISE_INFERENCE_API__{name}: is shorter than 32 bytes; make one")


def test_bytes_count_and_not_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX + "SIGNING_KEY", "é" * 16)
    assert load_settings().inference_api.required_key() == "é" * 16


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("127.0.0.1:8420", "is no address"),
        ("ftp://host", "is no address"),
        ("http://", "is no address"),
        ("http://ann:secret@host", "takes no user, password"),
        ("http://host?token=1", "takes no user, password, query"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(
    monkeypatch: pytest.MonkeyPatch, url: str, words: str
) -> None:
    text = problem(monkeypatch, URL=url, SIGNING_KEY=KEY)
    assert text.startswith(f"REPRISE_INFERENCE_API__URL: {words}")


def test_url_and_key_together_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX + "URL", "http://127.0.0.1:8420/base/")
    monkeypatch.setenv(PREFIX + "SIGNING_KEY", KEY)
    settings = load_settings()
    assert settings.inference_api.url == "http://127.0.0.1:8420/base"
    assert KEY not in repr(settings)
    assert KEY not in settings.model_dump_json()


def test_nothing_is_on_by_default() -> None:
    api = Settings().inference_api
    assert (api.url, api.user, api.scheduled_user, api.proxy_header) == (None, None, None, None)
