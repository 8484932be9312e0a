"""What is said between the engine and a model: requests, messages, tools, replies.

Source: specification A1 to A4.
"""

from typing import Literal

from pydantic import Field, JsonValue

from reprise.model.agent import AgentDefinition, ToolChoice
from reprise.model.base import Value
from reprise.model.project import ProjectFile
from reprise.model.result import Usage


class ToolCall(Value):
    """A tool that the model wants to use."""

    id: str
    """The provider's id of the call."""
    name: str
    """The tool."""
    arguments: str
    """Its arguments as the model wrote them: JSON, perhaps broken."""


class Media(Value):
    """A picture or a sound inside a message."""

    media_type: str = Field(pattern=r"^(image|audio)/[a-z0-9.+-]+$")
    """Its media type, such as `image/png` or `audio/wav`."""
    data: str = Field(min_length=1, pattern=r"^[A-Za-z0-9+/]+={0,2}$")
    """Its bytes in base64."""


class MessageOption(Value):
    """A field that one protocol knows and the others do not, such as Anthropic's `is_error`."""

    protocol: Literal["openai", "anthropic"]
    """Whose field it is; the others' requests go without it."""
    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """The field: of the message for OpenAI, of its last content block for Anthropic."""
    value: str
    """Its value as JSON text, so that a message is immutable to the bottom."""


class Message(Value):
    """One message of a conversation.

    What is made of a message is kept by its identity (`reprise.agents.memo`): to change one is to
    replace it, by `model_copy`.
    """

    role: str = Field(pattern="^(user|assistant|tool)$")
    """Who speaks."""
    content: str
    """The text."""
    parts: tuple[str | Media, ...] = ()
    """What follows the text, in order: media, and texts between them."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Calls that an assistant message asks for."""
    tool_call_id: str | None = None
    """The call that a tool message answers."""
    keep_last: str | None = None
    """A tag: of the messages under one tag only the last keeps its content."""
    ttl_turns: int | None = Field(default=None, ge=1)
    """Its content is left out once so many assistant messages follow; null keeps it."""
    options: tuple[MessageOption, ...] = ()
    """Fields for one protocol alone."""


class ToolSchema(Value):
    """A tool as the model sees it."""

    name: str
    """Its name."""
    description: str
    """What it does, for the model."""
    parameters: dict[str, JsonValue]
    """JSON Schema of its arguments."""


class PriorOutput(Value):
    """A prior step's output as an agent may read it."""

    order: int
    """The step's order."""
    label: str
    """The step's label."""
    type: str
    """The step's type."""
    agent_type: str | None = None
    """Type of the agent that gave it."""
    output: JsonValue = None
    """The raw output."""


class ProjectDocument(Value):
    """A text file of the project as an agent may read it."""

    name: str
    """Its name."""
    text: str
    """Its text, perhaps cut."""


class AgentInputs(Value):
    """The same things that the prompt holds, as values: the heuristic provider reads these."""

    user_request: str = ""
    """The free-text request."""
    prior: tuple[PriorOutput, ...] = ()
    """Prior outputs that the step reads, by order."""
    documents: tuple[ProjectDocument, ...] = ()
    """Project documents; only for an agent with ProjectRead."""
    files: tuple[ProjectFile, ...] = ()
    """Project files; only for an agent with ProjectRead."""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    """Figures of the step, such as an edit room's wanted length."""


class ModelRequest(Value):
    """One call of a model."""

    agent: AgentDefinition
    """Who is asked."""
    system_prompt: str
    """The agent's prompt with its variables replaced and its skills appended."""
    messages: tuple[Message, ...]
    """The conversation so far."""
    tools: tuple[ToolSchema, ...] = ()
    """Tools that may be used."""
    tool_choice: ToolChoice | None = None
    """What the model is told of them; None says nothing."""
    output_schema: dict[str, JsonValue] | None = None
    """JSON Schema of the final answer."""
    inputs: AgentInputs = AgentInputs()
    """The inputs as values."""
    timeout_seconds: float = 300.0
    """Total deadline of the call."""


class ModelReply(Value):
    """What a model answered."""

    text: str
    """The answer's text."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Tools that it wants to use."""
    finish_reason: str
    """`stop`, `tool_calls`, `length`, `content_filter` or `other`."""
    usage: Usage
    """What the call took."""
    model: str
    """The model that answered."""
    waited_seconds: float = Field(default=0.0, ge=0)
    """How long the call waited for its turn, the provider's limits being what they are."""


class ProviderIdentity(Value):
    """What of a provider belongs into a cache key."""

    id: str
    """Provider id in the settings: `heuristic`, `openai`, …"""
    kind: str
    """Adapter: `heuristic`, `openai_compatible`, `scripted`."""
    endpoint: str = ""
    """Base address, without credentials."""
    model: str = ""
    """Model that answers when the agent names none."""
    revision: str = ""
    """Revision of the rules, for a deterministic provider."""
    reads_values: bool = True
    """True when its answers may depend on a request's `inputs`, not on what the model is shown
    alone; what they hold is part of the key then."""
    lenient: bool = False
    """An answer that still breaks its schema after the last correction is mended where it can be,
    in place of failing the step."""
