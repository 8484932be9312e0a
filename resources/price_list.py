"""The price list that ships with the engine, from its file resources/model_prices.json."""

from functools import cache
from pathlib import Path

from reprise.agents.prices import PriceList

PATH = Path(__file__).with_name("model_prices.json")


@cache
def load_price_list() -> PriceList:
    """Return the shipped price list; read once in a process."""
    return PriceList.model_validate_json(PATH.read_bytes())
