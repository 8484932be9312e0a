"""What a workflow is: ordered steps, each with a type, a typed config and an input mode.

The names are the specification's and the same in YAML, Python, cache key and metadata. To add a
step type: a member of `StepType`, a config class if it needs one, a row in
reprise/cache/policy.py, an executor in pipelines/steps.

Source: specification W1 to W4.
"""

import re
from enum import StrEnum

from pydantic import Field, JsonValue

from reprise.model.base import Value
from reprise.model.sandbox import SandboxSeed

SLUG_REFUSED = re.compile(r"[^A-Za-z0-9_]")


def slug(name: str) -> str:
    """Return the name in the letters that Dagster accepts (specification W2a)."""
    return SLUG_REFUSED.sub("_", name)


class StepType(StrEnum):
    """What a step does."""

    EXTRACT = "Extract"
    VIDEO_ANALYZE = "VideoAnalyze"
    VIDEO_COMPILE = "VideoCompile"
    EDIT_ROOM = "EditRoom"
    GRAPHICS_ROOM = "GraphicsRoom"
    COLOR_GRADE_ROOM = "ColorGradeRoom"
    AGENT = "Agent"
    REVIEW_LOOP = "ReviewLoop"
    CONDITIONAL = "Conditional"
    FOR_EACH = "ForEach"
    PARALLEL = "Parallel"
    FUNCTION = "Function"
    SCRIPT = "Script"

    @classmethod
    def _missing_(cls, value: object) -> "StepType | None":
        """Take a type in any letter case, as `function`."""
        name = str(value).lower()
        return next((member for member in cls if member.value.lower() == name), None)


class InputMode(StrEnum):
    """Which prior outputs a step reads."""

    FULL_WORKFLOW = "full_workflow"
    PREVIOUS_STEP_ONLY = "previous_step_only"
    SELECTED_PRIOR_STEPS = "selected_prior_steps"
    CUSTOM_MAPPED_SUBSET = "custom_mapped_subset"


class CacheMode(StrEnum):
    """A step's own word on caching; none leaves it to the policy."""

    NEVER = "never"
    ALWAYS = "always"


class FunctionConfig(Value):
    """A user's Python callable."""

    callable: str = Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
    """`module:callable`."""
    pure: bool = False
    """True when the result depends on the arguments alone; only then it is cached. One that is
    not pure keeps its order among the steps with side effects."""
    sets: tuple[str, ...] = ()
    """Variables that it may set besides its output variable; steps that name one wait for it."""
    stops: bool = False
    """It may stop the workflow: every later step waits for it."""
    files: tuple[str, ...] = ("*",)
    """Names or glob patterns of the project files that it may see and read; `*` means all. A pure
    function runs again when one of them changes."""


class ExtractConfig(Value):
    """Fields out of prior outputs, and text out of project documents."""

    fields: dict[str, str] = Field(default_factory=dict)
    """Output name → JMESPath over `{"steps": {"1": …}, "variables": …}`."""
    documents: tuple[str, ...] = ()
    """Names or glob patterns of project documents whose text is taken."""
    text_chars_max: int = Field(default=20_000, gt=0)
    """A document's text is cut after this many characters."""


class VideoAnalyzeConfig(Value):
    """What to analyse."""

    sources: tuple[str, ...] = ("*",)
    """Names or glob patterns of project files; `*` takes all videos."""
    speech: bool = True
    """Recognise speech."""
    language: str | None = None
    """Language code of the speech; null detects it."""
    shot_threshold: float = Field(default=1.0, gt=0, le=10)
    """Sensitivity of the cut detector: 1 is the measured default, higher finds fewer cuts."""
    black_seconds_min: float = Field(default=0.3, gt=0)
    """Shortest black span reported, in seconds."""
    freeze_seconds_min: float = Field(default=0.7, gt=0)
    """Shortest frozen span reported, in seconds."""
    silence_seconds_min: float = Field(default=0.3, gt=0)
    """Shortest silence reported, in seconds."""
    silence_db: float = Field(default=-40.0, le=0)
    """Below this level it is silence, in dBFS."""


class EditRoomConfig(Value):
    """Who is in the room, and the frame they work in."""

    agents: tuple[str, ...] = ("story-editor", "pacing-critic", "director")
    """Agent ids, in speaking order; the last one decides."""
    target_seconds: float = Field(default=25.0, gt=0)
    """Wanted length when neither request nor brief names one."""
    seconds_min: float = Field(default=15.0, gt=0)
    """Shortest film."""
    seconds_max: float = Field(default=40.0, gt=0)
    """Longest film; it is also never longer than half of the source."""
    cuts_min: int = Field(default=4, ge=1)
    """Fewest cuts, where the source has as many usable passages."""


class VideoCompileConfig(Value):
    """How the film is made; orders name the steps whose raw outputs are taken."""

    edit_decision_order: int | None = None
    """Step that gives the edit decision."""
    analysis_order: int | None = None
    """Step that gives the analysis."""
    captions: bool = True
    """Burn captions in; side files are always written when there is speech."""
    title_card: bool = True
    """Begin with a title card."""
    title_seconds: float = Field(default=2.0, gt=0, le=10)
    """Length of the title card."""
    height_max: int = Field(default=1080, ge=144, le=4320)
    """Tallest picture; a smaller source keeps its size."""
    loudness_lufs: float = Field(default=-14.0, ge=-40, le=-5)
    """Integrated loudness of the film."""
    audio_fade_seconds: float = Field(default=0.03, ge=0, le=2)
    """Fade at each cut's audio edges."""
    crf: int = Field(default=20, ge=0, le=51)
    """x264 quality; lower is better and larger."""
    preset: str = "veryfast"
    """x264 preset."""


class GraphicsRoomConfig(Value):
    """Who plans titles, lower thirds and captions."""

    agents: tuple[str, ...] = ()
    """Agent ids, in speaking order; the last one decides."""


class ColorGradeRoomConfig(Value):
    """Who chooses the grades."""

    agents: tuple[str, ...] = ()
    """Agent ids, in speaking order; the last one decides."""


class Step(Value):
    """One step of a workflow."""

    order: int = Field(ge=1)
    """Place in the workflow, from 1."""
    label: str = Field(min_length=1, max_length=80)
    """Name of the step, unique in its workflow."""
    type: StepType
    """What it does."""
    agent: str | None = None
    """Agent id, for a step of type Agent."""
    input_mode: InputMode = InputMode.FULL_WORKFLOW
    """Which prior outputs it reads."""
    selected_prior_step_orders: tuple[int, ...] = ()
    """Orders read in mode `selected_prior_steps`."""
    input_mapping: dict[str, str] = Field(default_factory=dict)
    """Name → JMESPath over `steps."<order>"` in mode `custom_mapped_subset`."""
    prompt: str | None = None
    """Task text of this step, shown to its agent; may hold `{{variables}}`."""
    condition: str | None = None
    """Runs only when this holds."""
    max_iterations: int | None = Field(default=None, ge=1, le=20)
    """Bound of a review loop."""
    min_score: float | None = None
    """Score that ends a review loop."""
    output_variable: str | None = None
    """Variable that holds the output; null means `{label}_output`."""
    cache_mode: CacheMode | None = None
    """The step's own word on caching."""
    allow_skipping_effects: bool = False
    """Second word that `cache_mode: always` needs on an agent with side effects."""
    extract: ExtractConfig | None = None
    """Config of an Extract step."""
    video_analyze: VideoAnalyzeConfig | None = None
    """Config of a VideoAnalyze step."""
    edit_room: EditRoomConfig | None = None
    """Config of an EditRoom step."""
    video_compile: VideoCompileConfig | None = None
    """Config of a VideoCompile step."""
    graphics_room: GraphicsRoomConfig | None = None
    """Config of a GraphicsRoom step."""
    color_grade_room: ColorGradeRoomConfig | None = None
    """Config of a ColorGradeRoom step."""
    function: FunctionConfig | None = None
    """Config of a Function step."""

    @property
    def name(self) -> str:
        """Dagster's name of the step: `s03_audience`."""
        return f"s{self.order:02d}_{slug(self.label)}"

    @property
    def variable(self) -> str:
        """Name of the variable that holds this step's output."""
        return self.output_variable or f"{slug(self.label)}_output"

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of all variables that the step may set."""
        return (self.variable, *(self.function.sets if self.function is not None else ()))


class SandboxConfig(Value):
    """What the sandbox of each execution begins with; without this block it is an empty folder."""

    template: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")
    """A folder `templates/NAME` beside the workflow files; null: an empty folder. `node_modules`
    and `.git` in it stay where they are."""
    seed: SandboxSeed = SandboxSeed.TEMPLATE
    """`template`, or `previous`: what the workflow's last execution on the project left, and the
    template when there is none."""


class Workflow(Value):
    """Ordered steps with variables, as a YAML file gives them."""

    id: str = Field(pattern=r"^[A-Za-z0-9_-]{1,60}$")
    """Unique id."""
    name: str = ""
    """Title for people; the id when empty."""
    description: str = ""
    """What it makes, for whom."""
    default_request: str = ""
    """The request when neither the run nor an earlier run of the project gives one."""
    variables: dict[str, JsonValue] = Field(default_factory=dict)
    """Variables that prompts and configs may name as `{{name}}`."""
    sandbox: SandboxConfig = SandboxConfig()
    """What agents with sandbox tools work on."""
    steps: tuple[Step, ...] = Field(min_length=1)
    """The steps, by rising order."""
    source_path: str = ""
    """The file that it was read from, for messages; not part of any key."""

    @property
    def slug(self) -> str:
        """Dagster's name of the workflow."""
        return slug(self.id)

    def step(self, order: int) -> Step:
        """Return the step of this order.

        Raises:
            KeyError: No step has this order.
        """
        for step in self.steps:
            if step.order == order:
                return step
        raise KeyError(order)
