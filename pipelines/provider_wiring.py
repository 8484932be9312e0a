"""Model providers as the settings describe them."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from reprise.agents.prices import ModelPrice, PriceOf
from reprise.errors import UnknownName
from reprise.ports import ModelProvider
from resources.anthropic_provider import BASE_URL, AnthropicProvider
from resources.model_call import Endpoint
from resources.openai_provider import OpenAICompatibleProvider
from resources.price_list import load_price_list
from resources.provider_settings import ProviderSettings
from resources.replay_provider import RecordingProvider, ReplayProvider
from resources.scripted_provider import ScriptedProvider
from resources.tool_modes import JsonToolProvider, LenientProvider, NoToolProvider

Setting = TypeVar("Setting")


def configured_provider(
    provider_id: str, chosen: ProviderSettings, other: Callable[[str], ModelProvider]
) -> ModelProvider:
    """Return the provider that the settings describe.

    Args:
        provider_id: Its id.
        chosen: Its settings.
        other: Gives another provider by id.

    Raises:
        UnknownName: They lack something that it needs; names the variable.
    """
    provider = _adapter(provider_id, chosen, other)
    if chosen.lenient:
        provider = LenientProvider(provider)
    match chosen.tools:
        case "native":
            return provider
        case "json":
            return JsonToolProvider(provider)
        case "none":
            return NoToolProvider(provider)


def _adapter(
    provider_id: str, chosen: ProviderSettings, other: Callable[[str], ModelProvider]
) -> ModelProvider:
    match chosen.kind:
        case "replay":
            recording = _given(chosen.recording, provider_id, "RECORDING", "to a file")
            if chosen.records is not None:
                return RecordingProvider(provider_id, other(chosen.records), recording)
            return ReplayProvider(provider_id, recording, context_tokens=chosen.context_tokens)
        case "scripted":
            script = _given(chosen.script, provider_id, "SCRIPT", "to a JSON file")
            return ScriptedProvider.from_file(
                provider_id, script, context_tokens=chosen.context_tokens
            )
        case "anthropic":
            endpoint = _endpoint(provider_id, chosen, chosen.base_url or BASE_URL)
            return AnthropicProvider(
                endpoint,
                model=_given(chosen.model, provider_id, "MODEL", "to a model's name"),
                structured_output=chosen.structured_output,
                context_tokens=chosen.context_tokens,
                prefix_cache=chosen.prefix_cache,
                price_of=_price_of(chosen, endpoint),
            )
        case "openai_compatible":
            base_url = _given(chosen.base_url, provider_id, "BASE_URL", "to the endpoint's address")
            endpoint = _endpoint(provider_id, chosen, base_url)
            return OpenAICompatibleProvider(
                endpoint,
                model=chosen.model,
                structured_output=chosen.structured_output,
                context_tokens=chosen.context_tokens,
                price_of=_price_of(chosen, endpoint),
            )


def _given(value: Setting | None, provider_id: str, name: str, what: str) -> Setting:
    if not value:
        message = (
            f"provider {provider_id!r}: set REPRISE_PROVIDERS__{provider_id.upper()}__{name} {what}"
        )
        raise UnknownName(message)
    return value


def _endpoint(provider_id: str, chosen: ProviderSettings, base_url: str) -> Endpoint:
    return Endpoint(
        provider_id=provider_id,
        base_url=base_url,
        api_key=chosen.api_key.get_secret_value() if chosen.api_key is not None else None,
        timeout_seconds=chosen.timeout_seconds,
        stream=chosen.stream,
        idle_seconds=chosen.idle_seconds,
        concurrency=chosen.concurrency,
        requests_per_minute=chosen.requests_per_minute,
    )


def _price_of(chosen: ProviderSettings, endpoint: Endpoint) -> PriceOf:
    """Return an endpoint's prices: those of the settings, else the shipped list's."""
    if chosen.price_input is not None and chosen.price_output is not None:
        price = ModelPrice(
            input=chosen.price_input,
            output=chosen.price_output,
            cache_read=chosen.price_cache_read,
            cache_write=chosen.price_cache_write,
        )
        return lambda _model: price
    return partial(load_price_list().price_of, endpoint.host)
