"""Sandboxes wired together; a part of pipelines/definitions.py."""

from functools import cached_property

from pipelines.cache_wiring import now
from reprise.ports import Sandboxes
from resources.definition_files import TEMPLATES
from resources.sandbox import FolderSandbox
from resources.sandbox.workspaces import FolderSandboxes
from resources.settings import Settings, workflows_path


class SandboxWiring:
    """The sandboxes' adapters, each made on first use.

    Args:
        settings: All knobs.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

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
