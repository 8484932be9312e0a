"""Tokens that let the engine ask in a user's name: made for each request, and verified.

A token is a JWT of algorithm HS256 that lives five minutes. Its claims: `sub`, `email` and
`isAdmin` of the user, `act` = `workflow-engine` (a plain text, where RFC 8693 has an object),
`executionId`, `iat`, `exp`, and `iss` and `aud` where they are set. There is no `nbf`: with clocks
a little apart it would refuse fresh tokens.

Verification takes ordinary sign-in tokens too, which lack `act` and `executionId`. It pins the
algorithm, wants every claim, and says to the caller alone why a token was refused.

Source: specification O1, O4, R9.
"""

from collections.abc import Callable
from datetime import datetime

import jwt
from pydantic import Field, StrictBool, ValidationError

from reprise.errors import RepriseError
from reprise.model.base import Value
from reprise.model.execution import Execution
from reprise.model.user import User

ALGORITHM = "HS256"
LIFETIME_SECONDS = 300
LEEWAY_SECONDS = 10
"""How far apart the clocks of engine and server may be."""
ACTOR = "workflow-engine"
TOKEN_CHARS_MAX = 4096
REQUIRED_CLAIMS = ("sub", "email", "isAdmin", "iat", "exp")


class TokenRefused(RepriseError):
    """A token is not one of ours, or no longer; the message says why and holds no part of it."""


class Claims(Value):
    """What a verified token says of its user."""

    user_id: str = Field(min_length=1)
    """Claim `sub`."""
    email: str
    """Claim `email`."""
    is_admin: StrictBool
    """Claim `isAdmin`."""
    execution_id: str | None
    """Claim `executionId`; None for a sign-in token."""


class OnBehalfTokens:
    """Makes and verifies tokens.

    Args:
        signing_key: At least 32 bytes; the settings see to it.
        previous_key: A key whose tokens are still taken.
        issuer: Claim `iss`; other tokens are refused where it is given.
        audience: Claim `aud`; other tokens are refused where it is given.
        clock: Tells the time of issue.
    """

    def __init__(
        self,
        signing_key: str,
        *,
        clock: Callable[[], datetime],
        previous_key: str | None = None,
        issuer: str | None = None,
        audience: str | None = None,
    ) -> None:
        self._keys = (signing_key, *(() if previous_key is None else (previous_key,)))
        self._issuer = issuer
        self._audience = audience
        self._clock = clock

    def issue(self, user: User, execution: Execution) -> str:
        """Return a token with which an execution asks in a user's name."""
        issued_at = int(self._clock().timestamp())
        claims: dict[str, object] = {
            "sub": user.id,
            "email": user.email,
            "isAdmin": user.is_admin,
            "act": ACTOR,
            "executionId": execution.execution_id,
            "iat": issued_at,
            "exp": issued_at + LIFETIME_SECONDS,
        }
        if self._issuer is not None:
            claims["iss"] = self._issuer
        if self._audience is not None:
            claims["aud"] = self._audience
        return jwt.encode(claims, self._keys[0], algorithm=ALGORITHM)

    def verify(self, token: str) -> Claims:
        """Return what a token says.

        Raises:
            TokenRefused: It cannot be believed.
        """
        if len(token) > TOKEN_CHARS_MAX:
            message = f"longer than {TOKEN_CHARS_MAX} characters"
            raise TokenRefused(message)
        values = self._decoded(token)
        act = values.get("act")
        execution_id = values.get("executionId")
        if act not in (None, ACTOR) or (act is None) is not (execution_id is None):
            message = f"`act` is other than {ACTOR!r}, or comes without `executionId`"
            raise TokenRefused(message)
        try:
            return Claims.model_validate(
                {
                    "user_id": values["sub"],
                    "email": values["email"],
                    "is_admin": values["isAdmin"],
                    "execution_id": execution_id,
                }
            )
        except ValidationError as error:
            fields = ", ".join(str(item["loc"][0]) for item in error.errors())
            message = f"claims of the wrong type: {fields}"
            raise TokenRefused(message) from None

    def _decoded(self, token: str) -> dict[str, object]:
        reason = "no key"
        for key in self._keys:
            try:
                values: dict[str, object] = jwt.decode(
                    token,
                    key,
                    algorithms=[ALGORITHM],
                    issuer=self._issuer,
                    audience=self._audience,
                    leeway=LEEWAY_SECONDS,
                    options={"require": [*REQUIRED_CLAIMS]},
                )
            except jwt.InvalidSignatureError:
                reason = "signed with another key"
            except jwt.PyJWTError as error:
                # The library's own words may quote what the token holds.
                raise TokenRefused(_reason(error)) from None
            else:
                return values
        raise TokenRefused(reason)


def _reason(error: jwt.PyJWTError) -> str:
    match error:
        case jwt.ExpiredSignatureError():
            return "expired"
        case jwt.ImmatureSignatureError():
            return "issued in the future; compare the clocks of engine and server"
        case jwt.MissingRequiredClaimError():
            return f"claim `{error.claim}` is missing"
        case jwt.InvalidAudienceError():
            return "for another audience (`aud`)"
        case jwt.InvalidIssuerError():
            return "of another issuer (`iss`)"
        case jwt.InvalidAlgorithmError():
            return f"of another algorithm than {ALGORITHM}"
        case _:
            return "no token that can be read"
