"""What a call costs, and what nobody knows."""

import pytest

from reprise.agents.prices import EndpointPrices, LongRates, ModelPrice, PriceList, priced
from reprise.model.conversation import ModelReply
from reprise.model.result import Usage

USAGE = Usage(
    input_uncached=1000, cache_read=2000, cache_write=400, output=300, reasoning=100, calls=1
)
PRICE = ModelPrice(input=3, cache_read=0.3, cache_write=3.75, output=15)
LIST = PriceList.model_validate(
    {
        "as_of": "2026-11-30",
        "currency": "USD",
        "unit": "per million tokens",
        "source": "a test",
        "endpoints": [
            EndpointPrices(host="api.example", models={"big-2": PRICE, "big-2-mini": PRICE}),
        ],
    }
)


def reply(model: str) -> ModelReply:
    usage = USAGE.model_copy(update={"cost_micros": None})
    return ModelReply(text="", finish_reason="stop", usage=usage, model=model)


def test_each_kind_of_token_has_its_price_and_reasoning_is_output() -> None:
    assert PRICE.cost_micros(USAGE) == 3000 + 600 + 1500 + 4500


def test_a_cache_price_that_is_not_listed_is_the_inputs() -> None:
    assert ModelPrice(input=3, output=15).cost_micros(USAGE) == 3 * 3400 + 4500


def test_a_long_prompt_has_prices_of_its_own_for_the_whole_call() -> None:
    long = LongRates(above_input_tokens=3000, input=6, output=22.5)
    price = PRICE.model_copy(update={"long": long})
    assert price.cost_micros(USAGE) == 6 * 3400 + 6750
    shorter = USAGE.model_copy(update={"input_uncached": 600})
    assert price.cost_micros(shorter) == PRICE.cost_micros(shorter)


def test_a_free_endpoint_costs_nothing_and_an_unknown_model_an_unknown_sum() -> None:
    free = ModelPrice(input=0, output=0)
    assert priced(reply("x"), lambda _: free).usage.cost_micros == 0
    assert priced(reply("x"), lambda _: None).usage.cost_micros is None


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("big-2", True),
        ("big-2-2026-08-07", True),
        ("big-2-20260807", True),
        ("big-2-latest", True),
        ("big-2-mini", True),
        ("big-2-nano", False),
        ("big-2.1", False),
        ("big", False),
    ],
)
def test_a_dated_snapshot_costs_what_its_model_costs_and_a_relative_does_not(
    model: str, known: bool
) -> None:
    assert (LIST.price_of("api.example", model) is not None) is known


def test_a_model_elsewhere_has_no_listed_price() -> None:
    assert LIST.price_of("127.0.0.1", "big-2") is None
