"""All knobs, read from the environment: `REPRISE_<GROUP>__<NAME>`.

Nothing is read at import; `load_settings()` reads once, when something starts. Every knob is a
field here or in reprise/model/settings.py, with its meaning below it; docs/reference/settings.md
lists them and a test compares.
"""

from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from reprise.errors import SettingsInvalid
from reprise.model.agent import LoopLimits
from reprise.model.feature_blocks import SANDBOX_EDIT_TOOLS
from reprise.model.settings import ContextBudgetSettings, StepCacheSettings
from resources.provider_settings import ProviderSettings


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class ObjectStoreSettings(_Group):
    """Where files and artifacts are kept. Environment: `REPRISE_OBJECT_STORE__…`."""

    kind: Literal["local", "s3"] = "local"
    """A folder on this machine, or any S3 endpoint."""
    root: Path | None = None
    """Folder of the local store; null means `objects` in the home."""
    bucket: str | None = None
    """S3 bucket."""
    prefix: str = ""
    """Put before every key in the bucket."""
    endpoint_url: str | None = None
    """S3 endpoint; null means Amazon's."""
    region: str | None = None
    """S3 region."""
    access_key_id: str | None = None
    """S3 key id; null leaves it to boto3's own chain."""
    secret_access_key: SecretStr | None = None
    """S3 secret."""


class DatabaseSettings(_Group):
    """Where the step cache's rows and leases are. Environment: `REPRISE_DATABASE__…`."""

    url: SecretStr | None = None
    """`postgresql://user:password@host:port/database`; null takes SQLite files in the home."""


class SandboxSettings(_Group):
    """Sandboxes of agents that author files. Environment: `REPRISE_SANDBOX__…`."""

    retention_days: float = Field(default=14.0, ge=1)
    """Workspaces and snapshots that no run used for so many days are removed."""
    node: str | None = None
    """Node.js that renders compositions: a program, or its name on PATH; null looks for `node`."""
    chromium: str | None = None
    """Browser that draws compositions: a program, or its name on PATH; null looks for `chromium`
    and its other usual names."""
    render_seconds: float = Field(default=600.0, gt=0)
    """Longest time until the frames of one film are drawn."""


class MediaSettings(_Group):
    """ffmpeg and its limits. Environment: `REPRISE_MEDIA__…`."""

    ffmpeg: Path | None = None
    """Program to use; null takes `REPRISE_FFMPEG`, the imageio-ffmpeg wheel, then PATH."""
    threads: int = Field(default=2, ge=1, le=64)
    """Encoder threads; part of the cache key, since another count gives other bytes."""
    wall_seconds: float = Field(default=3600.0, gt=0)
    """Longest run of one ffmpeg process."""
    max_pixels: int = Field(default=40_000_000, gt=0)
    """Largest picture that is decoded, in pixels."""


class SpeechSettings(_Group):
    """Speech recognition. Environment: `REPRISE_SPEECH__…`."""

    model: str | None = None
    """A model folder, or a name for a download from a hub; null takes the installed weights
    package."""
    cpu_threads: int = Field(default=2, ge=1, le=64)
    """Threads of one recognition."""


SIGNING_KEY_BYTES_MIN = 32
"""Shorter keys are weaker than HS256 itself (RFC 7518, section 3.2)."""


class InferenceApiSettings(_Group):
    """The Inference API and its users. Environment: `REPRISE_INFERENCE_API__…`."""

    url: str | None = None
    """Where the agents' tool `search_project_files` asks, such as `http://127.0.0.1:8420`; null
    asks the home's own index."""
    signing_key: SecretStr | None = None
    """Signs and verifies tokens: a random text of 32 bytes or more, the same for engine and server;
    required where a URL is set and by `reprise api`."""
    previous_signing_key: SecretStr | None = None
    """The server takes tokens of this key too, while keys are exchanged."""
    issuer: str | None = None
    """Claim `iss` of the tokens; the server takes no other where it is set."""
    audience: str | None = None
    """Claim `aud` of the tokens; the server takes no other where it is set."""
    timeout_seconds: float = Field(default=30.0, gt=0)
    """Total deadline of one call."""
    user: str | None = None
    """You, on the command line: id or e-mail address of a user; runs are started and projects made
    in this name."""
    scheduled_user: str | None = None
    """In whose name schedules and sensors start runs; null means in nobody's."""
    proxy_header: str | None = None
    """Header in which the proxy before the web server names the signed-in user, such as
    `X-Forwarded-Email`; null believes none."""

    @field_validator("url")
    @classmethod
    def _is_plain_url(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            message = "is no address; write it as `http://127.0.0.1:8420`"
            raise ValueError(message)
        if parts.username or parts.password or parts.query or parts.fragment:
            message = "takes no user, password, query or fragment; tokens are made from the key"
            raise ValueError(message)
        return url.rstrip("/")

    @field_validator("signing_key", "previous_signing_key")
    @classmethod
    def _is_long_enough(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and len(key.get_secret_value().encode()) < SIGNING_KEY_BYTES_MIN:
            message = (
                f"is shorter than {SIGNING_KEY_BYTES_MIN} bytes; make one with "
                "`python -c 'import secrets; print(secrets.token_urlsafe(48))'`"
            )
            raise ValueError(message)
        return key

    @model_validator(mode="after")
    def _has_a_key(self) -> Self:
        if self.url is not None:
            self.required_key()
        return self

    def required_key(self) -> str:
        """Return the signing key.

        Raises:
            SettingsInvalid: There is none.
        """
        if self.signing_key is None:
            message = (
                "REPRISE_INFERENCE_API__SIGNING_KEY: is required with REPRISE_INFERENCE_API__URL "
                "and by `reprise api`; make one with "
                "`python -c 'import secrets; print(secrets.token_urlsafe(48))'`"
            )
            raise SettingsInvalid(message)
        return self.signing_key.get_secret_value()


class SandboxEditToolsSettings(_Group):
    """Edit tools of sandboxes. Environment: `REPRISE_SANDBOX_EDIT_TOOLS__…`."""

    enabled: bool = True
    """False takes targeted edits, ranged reads and outlines of sandbox files from all agents, and
    the parts of prompts that speak of them."""


class Settings(BaseSettings):
    """Everything that can be set. Environment: `REPRISE_…`."""

    model_config = SettingsConfigDict(
        env_prefix="REPRISE_",
        env_nested_delimiter="__",
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        # What is wrong may be a secret.
        hide_input_in_errors=True,
    )

    home: Path = Path(".reprise")
    """Folder of the embedded databases, the local object store and the Dagster instance."""
    workflows_dir: Path | None = None
    """Folder of workflow and agent files; null takes `workflows` here if there is one, else the
    shipped ones."""
    ffmpeg: Path | None = None
    """Program to use, where `REPRISE_MEDIA__FFMPEG` is not set."""
    provider: str = "heuristic"
    """Provider that agents use; a key in the environment alone never chooses one."""
    run_threads: int = Field(default=8, ge=1, le=256)
    """Steps of one run that may work at the same time."""
    step_cache: StepCacheSettings = StepCacheSettings()
    """The step-result cache."""
    context_budget: ContextBudgetSettings = ContextBudgetSettings()
    """The prompt-context budget."""
    database: DatabaseSettings = DatabaseSettings()
    """Where the step cache's rows and leases are."""
    object_store: ObjectStoreSettings = ObjectStoreSettings()
    """Where files and artifacts are kept."""
    sandbox: SandboxSettings = SandboxSettings()
    """Sandboxes of agents that author files."""
    media: MediaSettings = MediaSettings()
    """ffmpeg and its limits."""
    speech: SpeechSettings = SpeechSettings()
    """Speech recognition."""
    agents: LoopLimits = LoopLimits()
    """Bounds of an agent's loop."""
    providers: dict[str, ProviderSettings] = Field(default_factory=dict)
    """Model providers by id."""
    inference_api: InferenceApiSettings = InferenceApiSettings()
    """The Inference API and its users."""
    sandbox_edit_tools: SandboxEditToolsSettings = SandboxEditToolsSettings()
    """Edit tools of sandboxes."""

    @property
    def features(self) -> frozenset[str]:
        """The features that are on."""
        return frozenset({SANDBOX_EDIT_TOOLS} if self.sandbox_edit_tools.enabled else ())

    @property
    def home_path(self) -> Path:
        """The home as an absolute path, `~` expanded."""
        return self.home.expanduser().absolute()


def load_settings() -> Settings:
    """Read the settings from the environment.

    Raises:
        SettingsInvalid: A variable cannot be used; names it and says why.
    """
    try:
        return Settings()
    except ValidationError as error:
        lines = [
            f"REPRISE_{'__'.join(str(part) for part in item['loc']).upper()}: "
            f"{item['msg'].removeprefix('Value error, ')}"
            for item in error.errors()
        ]
        raise SettingsInvalid("\n".join(lines)) from error
    except ValueError as error:
        raise SettingsInvalid(str(error)) from error


def data_path(name: str) -> Path:
    """Return a file or folder that ships with the engine, in a checkout or an installed wheel."""
    root = Path(__file__).resolve().parent.parent
    direct = root / name
    return direct if direct.exists() else root / "workflows" / name


def workflows_path(settings: Settings) -> Path:
    """Return the folder of workflow and agent files."""
    if settings.workflows_dir is not None:
        return settings.workflows_dir.expanduser().absolute()
    here = Path.cwd() / "workflows"
    return here if here.is_dir() else data_path("workflows")
