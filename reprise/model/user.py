"""Who may ask for things: a person with an id, an e-mail address and perhaps an admin's rights.

Source: specification O1.
"""

import re

from pydantic import Field, field_validator

from reprise.model.base import Value

USER_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
EMAIL_CHARS_MAX = 254
_EMAIL = re.compile(r"[^\s@\x00-\x1f\x7f]{1,64}@[^\s@\x00-\x1f\x7f]{1,189}")


class User(Value):
    """A person."""

    id: str = Field(pattern=USER_ID_PATTERN)
    """Unique; owners of projects and initiators of runs are named by it."""
    email: str = Field(max_length=EMAIL_CHARS_MAX)
    """Unique, whatever its letter case."""
    is_admin: bool = False
    """May read every project."""

    @field_validator("email")
    @classmethod
    def _is_address(cls, email: str) -> str:
        if _EMAIL.fullmatch(email) is None:
            message = f"{email!r} is no e-mail address"
            raise ValueError(message)
        return email
