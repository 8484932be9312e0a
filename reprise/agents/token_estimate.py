"""How many tokens a message takes, estimated: a quarter of its bytes, a flat sum for a picture.

No tokenizer is asked: each model has its own, and theirs are downloaded. The estimate of a message
is kept by its identity, and a history's is the sum of its messages'. Whoever tries out sizes of a
message that is still changing asks `estimated_tokens`, which keeps nothing.

Source: specification M6.
"""

import json
from collections.abc import Iterable

from reprise.agents.memo import Memo
from reprise.model.conversation import Media, Message, ModelRequest

BYTES_PER_TOKEN = 4
"""What is usual for English prose; text in other scripts takes more bytes, and more tokens."""

MESSAGE_TOKENS = 4
"""What role and boundaries take."""

IMAGE_TOKENS = 1_600
"""A large picture; providers scale one down to about this."""

AUDIO_BYTES_PER_TOKEN = 1_000
"""Compressed sound: about 16 KB a second, of which models make 10 to 32 tokens."""


def text_tokens(text: str) -> int:
    """Return the estimate of a text, rounded up."""
    size_bytes = len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
    return -(-size_bytes // BYTES_PER_TOKEN)


def estimated_tokens(message: Message) -> int:
    """Return the estimate of a message, made afresh."""
    calls = (text for call in message.tool_calls for text in (call.name, call.arguments))
    return (
        MESSAGE_TOKENS
        + text_tokens(message.content)
        + sum(map(_part_tokens, message.parts))
        + sum(map(text_tokens, calls))
    )


def message_tokens(message: Message) -> int:
    """Return the estimate of a message, made once."""
    return TOKENS(message)


def history_tokens(messages: Iterable[Message]) -> int:
    """Return the sum of the messages' estimates."""
    return sum(TOKENS.each(messages))


def frame_tokens(request: ModelRequest) -> int:
    """Return the estimate of everything in a request but its messages, made afresh."""
    tools = [tool.model_dump(mode="json") for tool in request.tools]
    return text_tokens(request.system_prompt) + text_tokens(
        json.dumps([tools, request.output_schema], ensure_ascii=False)
    )


def _part_tokens(part: str | Media) -> int:
    if isinstance(part, str):
        return text_tokens(part)
    if part.media_type.startswith("image/"):
        return IMAGE_TOKENS
    return -(-len(part.data) * 3 // 4 // AUDIO_BYTES_PER_TOKEN)


TOKENS: Memo[Message, int] = Memo(estimated_tokens)
"""Each message's estimate."""
