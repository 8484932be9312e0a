"""Which provider the settings make, and what they say when something is missing."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipelines.definitions import Wiring
from reprise.errors import SettingsInvalid, UnknownName
from reprise.ports import ModelProvider
from resources.anthropic_provider import AnthropicProvider
from resources.openai_provider import OpenAICompatibleProvider
from resources.settings import load_settings
from resources.tool_modes import JsonToolProvider, NoToolProvider
from tests.model_endpoint import EndpointServer, endpoint_server

LOCAL = "http://127.0.0.1:8080/v1"


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REPRISE_HOME", str(tmp_path))


@pytest.fixture
def server() -> Iterator[EndpointServer]:
    with endpoint_server() as server:
        yield server


def made(monkeypatch: pytest.MonkeyPatch, **fields: str) -> ModelProvider:
    for name, value in fields.items():
        monkeypatch.setenv(f"REPRISE_PROVIDERS__P__{name.upper()}", value)
    return Wiring(load_settings()).provider("p")


def test_the_protocol_is_openais_unless_the_kind_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider = made(monkeypatch, base_url=LOCAL, model="m", context_tokens="2048")
    assert isinstance(provider, OpenAICompatibleProvider)
    assert provider.context_tokens == 2048
    assert provider.identity().endpoint == LOCAL


def test_anthropics_own_endpoint_and_prices_are_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider = made(monkeypatch, kind="anthropic", model="claude-sonnet-5-5")
    assert isinstance(provider, AnthropicProvider)
    assert provider.identity().endpoint == "https://api.anthropic.com"
    price = provider.price_of("claude-sonnet-5-5")
    assert price is not None
    assert price.cache_read is not None


@pytest.mark.parametrize(
    ("fields", "missing"),
    [
        ({"model": "m"}, "REPRISE_PROVIDERS__P__BASE_URL to the endpoint"),
        ({"kind": "anthropic"}, "REPRISE_PROVIDERS__P__MODEL to a model"),
        ({"kind": "scripted"}, "REPRISE_PROVIDERS__P__SCRIPT to a JSON file"),
        ({"kind": "replay"}, "REPRISE_PROVIDERS__P__RECORDING to a file"),
    ],
)
def test_what_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, str], missing: str
) -> None:
    with pytest.raises(UnknownName, match=f"provider 'p': set {missing}"):
        made(monkeypatch, **fields)


def test_the_way_to_call_tools_is_chosen_and_is_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    native = made(monkeypatch, base_url=LOCAL)
    as_json = made(monkeypatch, tools="json")
    none = made(monkeypatch, tools="none")
    assert isinstance(as_json, JsonToolProvider)
    assert isinstance(none, NoToolProvider)
    assert len({p.identity().revision for p in (native, as_json, none)}) == 3
    assert as_json.context_tokens is None


def test_the_old_name_of_a_setting_says_the_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsInvalid, match="native_tools is called tools now"):
        made(monkeypatch, base_url=LOCAL, native_tools="false")


def test_the_key_is_in_no_settings_that_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = made(monkeypatch, base_url=LOCAL, api_key="sk-secret-0123456789")
    assert "sk-secret" not in repr(load_settings())
    assert "sk-secret" not in repr(vars(provider))


def test_threads_that_ask_for_a_provider_get_the_same_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its limits on calls hold for all of them."""
    monkeypatch.setenv("REPRISE_PROVIDERS__P__BASE_URL", LOCAL)
    wiring = Wiring(load_settings())
    with ThreadPoolExecutor(8) as pool:
        providers = list(pool.map(lambda _: wiring.provider("p"), range(32)))
    assert len({id(provider) for provider in providers}) == 1
