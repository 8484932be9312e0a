"""What a call cost: a dated list of prices as data, and the sum for one call's usage.

The list is resources/model_prices.json; a new model is a line there. What the list does not name
has no price: the cost is unknown then, never 0.

Source: specification A4. Tests: tests/unit/agents/test_prices.py.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date

from pydantic import Field

from reprise.model.base import Value
from reprise.model.conversation import ModelReply
from reprise.model.result import Usage

SNAPSHOT = re.compile(r"-(?:latest|\d{8}|\d{4}-\d{2}-\d{2})")
"""What may follow a listed name: a dated snapshot costs what its model costs, another model of the
same family does not."""


class Rates(Value):
    """Dollars per million tokens."""

    input: float = Field(ge=0)
    """Input that is read afresh."""
    cache_read: float | None = Field(default=None, ge=0)
    """Input from the provider's prefix cache; null costs what other input does."""
    cache_write: float | None = Field(default=None, ge=0)
    """Input into the provider's prefix cache; null costs what other input does."""
    output: float = Field(ge=0)
    """Output, reasoning included."""

    def cost_micros(self, usage: Usage) -> int:
        """Return what a call took, in millionths of a dollar."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        return round(
            usage.input_uncached * self.input
            + usage.cache_read * read
            + usage.cache_write * write
            + usage.output * self.output
        )


class LongRates(Rates):
    """Rates of a call with a long prompt; the whole call is counted at them."""

    above_input_tokens: int = Field(gt=0)
    """A longer prompt counts as long."""


class ModelPrice(Rates):
    """What a model costs."""

    long: LongRates | None = None
    """Rates for long prompts, where they differ."""

    def cost_micros(self, usage: Usage) -> int:
        """Return what a call took, in millionths of a dollar."""
        prompt = usage.tokens - usage.output
        if self.long is not None and prompt > self.long.above_input_tokens:
            return self.long.cost_micros(usage)
        return super().cost_micros(usage)


class EndpointPrices(Value):
    """What the models of one endpoint cost."""

    host: str
    """Its host: the same model may cost something else elsewhere."""
    models: dict[str, ModelPrice]
    """Model → price."""


class PriceList(Value):
    """Prices as they were on one day."""

    as_of: date
    """That day."""
    currency: str = Field(pattern="^USD$")
    """Dollars."""
    unit: str = Field(pattern="^per million tokens$")
    """What a price is for."""
    source: str
    """Where the prices are from."""
    endpoints: tuple[EndpointPrices, ...]
    """Prices by endpoint."""

    def price_of(self, host: str, model: str) -> ModelPrice | None:
        """Return a model's price at an endpoint; None when the list names none."""
        for endpoint in self.endpoints:
            if endpoint.host == host:
                return _named(endpoint.models, model)
        return None


PriceOf = Callable[[str], ModelPrice | None]
"""Model → its price at one endpoint."""


def priced(reply: ModelReply, price_of: PriceOf) -> ModelReply:
    """Return a reply with the cost of its call; unknown where the answering model has no price."""
    price = price_of(reply.model)
    cost = None if price is None else price.cost_micros(reply.usage)
    return reply.model_copy(update={"usage": reply.usage.model_copy(update={"cost_micros": cost})})


def _named(models: Mapping[str, ModelPrice], model: str) -> ModelPrice | None:
    if model in models:
        return models[model]
    names = (n for n in models if model.startswith(n) and SNAPSHOT.fullmatch(model[len(n) :]))
    return models[name] if (name := next(names, None)) is not None else None
