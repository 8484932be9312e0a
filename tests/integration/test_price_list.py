"""The shipped price list, and which prices a configured provider takes."""

from datetime import date
from pathlib import Path

import pytest

from pipelines.definitions import Wiring
from reprise.errors import SettingsInvalid
from resources.openai_provider import OpenAICompatibleProvider
from resources.price_list import load_price_list
from resources.settings import load_settings


def test_the_shipped_list_is_dated_and_knows_both_vendors() -> None:
    prices = load_price_list()
    assert prices.as_of >= date(2026, 11, 30)
    assert {endpoint.host for endpoint in prices.endpoints} == {
        "api.anthropic.com",
        "api.openai.com",
    }
    sonnet = prices.price_of("api.anthropic.com", "claude-sonnet-4-5-20250929")
    assert sonnet is not None
    assert (sonnet.input, sonnet.cache_read, sonnet.cache_write, sonnet.output) == (
        3,
        0.3,
        3.75,
        15,
    )
    assert prices.price_of("api.openai.com", "gpt-99") is None


def test_a_longer_prompt_never_costs_less() -> None:
    for endpoint in load_price_list().endpoints:
        for name, price in endpoint.models.items():
            assert price.input <= price.output, name
            assert price.cache_read is None or price.cache_read <= price.input, name
            assert price.long is None or price.long.input >= price.input, name


def provider(
    monkeypatch: pytest.MonkeyPatch, home: Path, **fields: str
) -> OpenAICompatibleProvider:
    monkeypatch.setenv("REPRISE_HOME", str(home))
    for name, value in fields.items():
        monkeypatch.setenv(f"REPRISE_PROVIDERS__P__{name.upper()}", value)
    made = Wiring(load_settings()).provider("p")
    assert isinstance(made, OpenAICompatibleProvider)
    return made


def test_a_price_in_the_settings_goes_before_the_list(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = provider(
        monkeypatch,
        tmp_path,
        base_url="https://api.openai.com/v1",
        price_input="0",
        price_output="0.5",
    )
    price = own.price_of("gpt-5")
    assert price is not None
    assert (price.input, price.output) == (0, 0.5)


def test_the_list_is_asked_by_the_endpoints_host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    listed = provider(monkeypatch, tmp_path, base_url="https://api.openai.com/v1")
    assert listed.price_of("gpt-5") is not None
    local = provider(monkeypatch, tmp_path, base_url="http://127.0.0.1:8080/v1")
    assert local.price_of("gpt-5") is None


def test_one_price_without_the_other_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPRISE_PROVIDERS__P__PRICE_INPUT", "3")
    with pytest.raises(SettingsInvalid, match="set both price_input and price_output"):
        load_settings()
