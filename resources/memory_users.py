"""People in this process's memory: the registry's twin, for tests and dry runs.

Extend tests/integration/test_user_registry_contract.py, which all registries pass.
"""

import threading
from collections.abc import Sequence

from reprise.errors import BadInput
from reprise.model.user import User


class MemoryUserRegistry:
    """A `UserRegistry` in memory; safe among threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users: dict[str, User] = {}

    def add_user(self, user: User) -> None:
        """Add a user; see `UserRegistry`."""
        with self._lock:
            for other in self._users.values():
                if other.id == user.id or other.email.casefold() == user.email.casefold():
                    message = (
                        f"there is user {other.id!r} with the e-mail address {other.email!r}; "
                        "remove that one first with `reprise user remove`"
                    )
                    raise BadInput(message)
            self._users[user.id] = user

    def user(self, user_id: str) -> User | None:
        """Return the user of an id, or None."""
        return self._users.get(user_id)

    def user_of_email(self, email: str) -> User | None:
        """Return the user of an e-mail address, or None."""
        wanted = email.casefold()
        return next((user for user in self.users() if user.email.casefold() == wanted), None)

    def users(self) -> Sequence[User]:
        """Return all users, by e-mail address."""
        with self._lock:
            return sorted(self._users.values(), key=lambda user: user.email.casefold())

    def remove_user(self, user_id: str) -> bool:
        """Remove a user; answer whether there was one."""
        with self._lock:
            return self._users.pop(user_id, None) is not None
