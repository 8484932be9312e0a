"""Who started a run: a run tag that only the engine can have written.

Any client of the web server may set run tags. So the initiator's tag counts with a proof beside it:
a MAC of run and user under the signing key, which is made where the user is known for sure: by the
command line and by the run coordinator. A tag that was copied into another run, as the UI does when
a run is launched again, proves nothing there.

Source: specification O2a, D15; docs/decisions/who-started-a-run.md.
"""

import hashlib
import hmac
import logging
from collections.abc import Mapping

from reprise.model.user import User
from reprise.ports import UserRegistry

logger = logging.getLogger(__name__)

WORKFLOW_TAG = "reprise/workflow"
PROJECT_TAG = "reprise/project"
INITIATOR_TAG = "reprise/initiator"
PROOF_TAG = "reprise/initiator_proof"

NOBODY = "(none)"
"""Value of both tags in place of one that a client had set: Dagster takes no tag off a run."""


def named_user(users: UserRegistry, name: str) -> User | None:
    """Return the user whom an id or an e-mail address means, or None."""
    # An id holds no `@`.
    return users.user_of_email(name) if "@" in name else users.user(name)


def initiator_tags(user: User | None, run_id: str, signing_key: str | None) -> dict[str, str]:
    """Return the tags that say who started a run; none for nobody, no proof without a key."""
    if user is None:
        return {}
    tags = {INITIATOR_TAG: user.id}
    if signing_key is not None:
        tags[PROOF_TAG] = _proof(user.id, run_id, signing_key)
    return tags


def initiator_of(run_id: str, tags: Mapping[str, str], signing_key: str | None) -> str | None:
    """Return the id of the user who started a run, or None when the tags do not prove one."""
    user_id = tags.get(INITIATOR_TAG, NOBODY)
    if user_id == NOBODY or signing_key is None:
        return None
    if hmac.compare_digest(
        tags.get(PROOF_TAG, "").encode(), _proof(user_id, run_id, signing_key).encode()
    ):
        return user_id
    logger.warning(
        "run %s: its tag %s is not believed, since it was not set by the engine under the present "
        "signing key; the run works in nobody's name",
        run_id,
        INITIATOR_TAG,
    )
    return None


def _proof(user_id: str, run_id: str, signing_key: str) -> str:
    # A key of its own: what signs tags must not be of use for tokens.
    key = hmac.digest(signing_key.encode(), b"reprise/initiator", "sha256")
    # Neither of the two can hold a line feed.
    return hmac.new(key, f"{run_id}\n{user_id}".encode(), hashlib.sha256).hexdigest()
