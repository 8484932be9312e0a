"""Users, tokens and the Inference API, wired by the settings.

A part of definitions.py, which alone uses it.

Source: specification O, D15.
"""

import logging
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import dagster as dg

from pipelines.cache_wiring import now
from pipelines.initiator import initiator_of, initiator_tags, named_user
from reprise.errors import UnknownName
from reprise.model.user import User
from reprise.ports import ProjectSearch, UserRegistry
from resources.deadline import Deadline
from resources.settings import Settings
from resources.sqlite_users import SqliteUserRegistry

if TYPE_CHECKING:
    from resources.on_behalf_tokens import OnBehalfTokens

logger = logging.getLogger(__name__)


class BehalfWiring:
    """The adapters for what is done in a user's name, each made on first use."""

    def __init__(self, settings: Settings) -> None:
        self._chosen = settings.inference_api
        self._home = settings.home_path

    @cached_property
    def users(self) -> UserRegistry:
        """People who may ask for things."""
        return SqliteUserRegistry(self._home / "users.db")

    @cached_property
    def tokens(self) -> "OnBehalfTokens":
        """Makes and verifies tokens.

        Raises:
            SettingsInvalid: There is no signing key.
        """
        # Lazy: httpx2 and PyJWT take a tenth of the time that importing Dagster does.
        from resources.on_behalf_tokens import OnBehalfTokens

        previous = self._chosen.previous_signing_key
        return OnBehalfTokens(
            self._chosen.required_key(),
            clock=now,
            previous_key=None if previous is None else previous.get_secret_value(),
            issuer=self._chosen.issuer,
            audience=self._chosen.audience,
        )

    @cached_property
    def search(self) -> ProjectSearch | None:
        """Searches by the Inference API; None where no URL is set."""
        if self._chosen.url is None:
            return None
        # Lazy, as in `tokens`.
        from resources.inference_api import InferenceApi

        return InferenceApi(
            self._chosen.url,
            issue=self.tokens.issue,
            users=self.users,
            timeout_seconds=self._chosen.timeout_seconds,
            deadline=Deadline("it").of,
        )

    def initiator(self, run_id: str, tags: Mapping[str, str]) -> str | None:
        """Return the user in whose name a run works, or None."""
        return initiator_of(run_id, tags, self._signing_key)

    def initiator_tags(self, user: User | None, run_id: str) -> dict[str, str]:
        """Return the tags that say in whose name a run works."""
        return initiator_tags(user, run_id, self._signing_key)

    def command_line_user(self) -> User | None:
        """Return the user whom the settings name for the command line, or None.

        Raises:
            UnknownName: There is no such user.
        """
        name = self._chosen.user
        if name is None:
            return None
        user = named_user(self.users, name)
        if user is None:
            message = (
                f"REPRISE_INFERENCE_API__USER: there is no user {name!r}; "
                "`reprise user list` names them, `reprise user add` adds one"
            )
            raise UnknownName(message)
        return user

    @property
    def proxy_header(self) -> str | None:
        """The header in which the proxy names the signed-in user; None believes none."""
        return self._chosen.proxy_header

    def scheduled_user(self) -> User | None:
        """Return the user in whose name schedules and sensors start runs, or None."""
        name = self._chosen.scheduled_user
        if name is None:
            return None
        return self.known_user(name, "REPRISE_INFERENCE_API__SCHEDULED_USER")

    def known_user(self, name: str, where: str) -> User | None:
        """Return the user of an id or an e-mail address; one that is not there is logged."""
        user = named_user(self.users, name)
        if user is None:
            logger.warning("%s: there is no user %r; the run works in nobody's name", where, name)
        return user

    def initiator_of_run(self, run: dg.DagsterRun | None) -> User | None:
        """Return the user in whose name a run works, or None."""
        user_id = None if run is None else self.initiator(run.run_id, run.tags)
        return None if user_id is None else self.users.user(user_id)

    @property
    def _signing_key(self) -> str | None:
        key = self._chosen.signing_key
        return None if key is None else key.get_secret_value()
