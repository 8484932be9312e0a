"""What an agent is: a prompt, an output schema, skills, tool groups, a model.

Source: specification A1, A2.
"""

from enum import StrEnum

from pydantic import Field, JsonValue

from reprise.model.base import Value


class ToolGroup(StrEnum):
    """What an agent may do; a tool outside an agent's groups is neither offered nor executed."""

    PROJECT_READ = "ProjectRead"
    PROJECT_WRITE = "ProjectWrite"
    WORKFLOW_READ = "WorkflowRead"
    SANDBOX_BROWSE = "SandboxBrowse"
    SANDBOX_AUTHORING = "SandboxAuthoring"
    SANDBOX_RENDER = "SandboxRender"


EFFECT_GROUPS = frozenset(
    {ToolGroup.PROJECT_WRITE, ToolGroup.SANDBOX_AUTHORING, ToolGroup.SANDBOX_RENDER}
)
"""The groups whose use changes something outside the agent's own output (specification C5)."""

SANDBOX_GROUPS = frozenset(
    {ToolGroup.SANDBOX_BROWSE, ToolGroup.SANDBOX_AUTHORING, ToolGroup.SANDBOX_RENDER}
)
"""The groups whose tools reach the execution's sandbox."""


class ToolChoice(StrEnum):
    """What a model is told of its tools."""

    AUTO = "auto"
    """It chooses whether to call any."""
    REQUIRED = "required"
    """It has to call one before it answers."""
    NONE = "none"
    """It sees them and may call none."""


class ModelParameters(Value):
    """How the model is sampled. What is left out is the provider's own choice."""

    model: str | None = None
    """Model name at the provider; null takes the provider's configured one."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Nucleus sampling mass."""
    seed: int | None = None
    """Sampling seed, where the provider takes one."""
    max_output_tokens: int = Field(default=4096, gt=0, le=200_000)
    """Longest answer, in tokens; a longer one is cut and counts as an error."""


class LoopLimits(Value):
    """Bounds of an agent's loop. Environment: `REPRISE_AGENTS__…`."""

    turns_max: int = Field(default=12, ge=1)
    """Most calls that got a reply."""
    tokens_max: int = Field(default=400_000, ge=1)
    """No further call once this many tokens are spent, in and out."""
    cost_usd_max: float | None = Field(default=None, gt=0)
    """No further call once this many dollars are spent, or when the model's price is unknown; null
    sets no bound."""
    seconds_max: float = Field(default=900.0, gt=0)
    """No further call after this many seconds."""
    call_seconds_max: float = Field(default=300.0, gt=0)
    """Deadline of one call."""
    repairs_max: int = Field(default=2, ge=0)
    """How often an answer that does not fit its schema is sent back."""
    attempts_max: int = Field(default=5, ge=1)
    """How often one call is tried when the endpoint fails in passing."""
    tool_calls_max: int = Field(default=16, ge=1)
    """Most tools run in one turn; further ones are answered with an error."""


class AgentLimits(Value):
    """Bounds of an agent's own loop; what is left out is taken from the settings."""

    turns_max: int | None = Field(default=None, ge=1)
    """Most calls that got a reply."""
    tokens_max: int | None = Field(default=None, ge=1)
    """No further call once this many tokens are spent, in and out."""
    cost_usd_max: float | None = Field(default=None, gt=0)
    """No further call once this many dollars are spent, or when the model's price is unknown."""
    seconds_max: float | None = Field(default=None, gt=0)
    """No further call after this many seconds."""

    def over(self, limits: LoopLimits) -> LoopLimits:
        """Return the bounds with these in their place."""
        return limits.model_copy(update=self.model_dump(exclude_none=True))


class AgentDefinition(Value):
    """An agent, as its Markdown file (front matter and system prompt) gives it."""

    id: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    """Unique id, the file's stem unless the front matter says otherwise."""
    agent_type: str
    """What kind of agent it is; the heuristic provider chooses its rules by it."""
    system_prompt: str = Field(min_length=1)
    """The file's Markdown body."""
    output_schema_name: str | None = None
    """Name of the output schema."""
    output_schema: dict[str, JsonValue] | None = None
    """JSON Schema (2020-12) of the answer; null for free text."""
    assigned_skills: tuple[str, ...] = ()
    """Skill texts that are appended to the system prompt, in this order."""
    tool_groups: frozenset[ToolGroup] = frozenset()
    """The tool groups that the agent may use."""
    tool_choice: ToolChoice | None = None
    """What the model is told of its tools; null leaves it to the provider."""
    inference_provider_id: str | None = None
    """A provider of its own; null takes the run's."""
    parameters: ModelParameters = ModelParameters()
    """Model and sampling."""
    limits: AgentLimits = AgentLimits()
    """Bounds of its loop. Those that decide what it answers, not only whether, are in the key."""
    source_path: str = ""
    """The file that it was read from, for messages; not part of any key."""
