"""The knobs of a model provider."""

from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator


class ProviderSettings(BaseModel):
    """One model provider. Environment: `REPRISE_PROVIDERS__<ID>__…`."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    kind: Literal["openai_compatible", "anthropic", "replay", "scripted"] = "openai_compatible"
    """Protocol that the endpoint speaks, or answers from a recording or a script."""
    base_url: str | None = None
    """Endpoint, such as `http://127.0.0.1:8080/v1`; null is Anthropic's own, for its protocol."""
    api_key: SecretStr | None = None
    """Key; never logged, never part of a cache key."""
    model: str = ""
    """Model that answers when an agent names none."""
    context_tokens: int | None = Field(default=None, gt=0)
    """The model's context, where it is small; tool results are cut to what it still holds."""
    structured_output: bool = True
    """The endpoint takes a JSON Schema as the format of an answer."""
    tools: Literal["native", "json", "none"] = "native"
    """How the model calls tools: by the endpoint's own means, as JSON in its text where these are
    not reliable, or not at all."""
    lenient: bool = False
    """For a weak model: an answer that still breaks its schema after the last correction is mended
    where it can be (numbers to their bounds, what does not exist left out), in place of failing
    the step. The step's notes say what was changed."""
    timeout_seconds: float = Field(default=300.0, gt=0)
    """Total deadline of one call."""
    concurrency: int = Field(default=8, ge=1, le=256)
    """Most calls of one model at once, over all runs of a process."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    """Most calls of one model in any minute; null sets no bound. The endpoint's own rate-limit
    headers are followed in any case."""
    stream: bool = False
    """Ask for answers as a stream: an endpoint that died is noticed after `idle_seconds`."""
    idle_seconds: float = Field(default=60.0, gt=0)
    """Longest silence of a stream."""
    prefix_cache: bool = True
    """Ask Anthropic to keep prompts in its prefix cache."""
    price_input: float | None = Field(default=None, ge=0)
    """Dollars per million input tokens, for all its models; null takes the shipped price list. 0
    where a call costs nothing."""
    price_output: float | None = Field(default=None, ge=0)
    """Dollars per million output tokens; goes with `price_input`."""
    price_cache_read: float | None = Field(default=None, ge=0)
    """Dollars per million tokens read from the prefix cache; null takes `price_input`."""
    price_cache_write: float | None = Field(default=None, ge=0)
    """Dollars per million tokens written to the prefix cache; null takes `price_input`."""
    script: Path | None = None
    """Answers of a scripted provider: a JSON file."""
    recording: Path | None = None
    """Recording that a replay provider answers from: a file of JSON lines."""
    records: str | None = None
    """Id of another provider that a replay provider asks, to record its answers."""

    @model_validator(mode="before")
    @classmethod
    def _knows_the_old_name(cls, values: object) -> object:
        if isinstance(values, dict) and "native_tools" in values:
            message = (
                "native_tools is called tools now: `native` for true; for false `json`, or `none` "
                "for what false meant"
            )
            raise ValueError(message)
        return values

    @model_validator(mode="after")
    def _has_both_prices(self) -> Self:
        if (self.price_input is None) != (self.price_output is None):
            message = "set both price_input and price_output, or neither"
            raise ValueError(message)
        return self
