"""Sandboxes wired together; a part of pipelines/definitions.py."""

from functools import cached_property

from pipelines.cache_wiring import now
from reprise.ports import CompositionRenderer, Sandboxes
from resources.definition_files import TEMPLATES
from resources.ffmpeg import FfmpegLocator
from resources.ffmpeg_runner import RunnerLimits
from resources.remotion_job import RemotionLimits
from resources.remotion_renderer import RemotionRenderer
from resources.sandbox import FolderSandbox
from resources.sandbox.workspaces import FolderSandboxes
from resources.settings import Settings, workflows_path


class SandboxWiring:
    """The sandboxes' adapters, each made on first use.

    Args:
        settings: All knobs.
        ffmpeg: Finds ffmpeg.
        limits: Bounds of each ffmpeg process.
    """

    def __init__(self, settings: Settings, ffmpeg: FfmpegLocator, limits: RunnerLimits) -> None:
        self._settings = settings
        self._ffmpeg = ffmpeg
        self._limits = limits

    def compositions(self, template: str) -> CompositionRenderer:
        """Return what renders compositions with the packages of a template."""
        sandbox = self._settings.sandbox
        return RemotionRenderer(
            workflows_path(self._settings) / TEMPLATES / template,
            self._ffmpeg,
            self._limits,
            node=sandbox.node,
            browser=sandbox.chromium,
            limits=RemotionLimits(seconds=sandbox.render_seconds),
        )

    @cached_property
    def sandboxes(self) -> Sandboxes:
        """The sandboxes of executions, in the home."""
        return FolderSandboxes(
            self._settings.home_path / "sandboxes",
            templates=workflows_path(self._settings) / TEMPLATES,
            files=FolderSandbox,
            clock=now,
            retention_days=self._settings.sandbox.retention_days,
        )
