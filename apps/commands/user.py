"""`reprise user add | list | remove`: people, for calls in their name."""

import argparse
import json
import secrets

from pydantic import ValidationError

from apps.commands.tables import table
from pipelines.definitions import Wiring
from pipelines.initiator import named_user
from reprise.errors import BadInput, UnknownName
from reprise.model.user import User
from reprise.ports import UserRegistry
from resources.settings import load_settings


def main(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    users = Wiring(load_settings()).behalf.users
    match arguments.action:
        case "add":
            return _add(users, arguments)
        case "list":
            return _list(users, as_json=arguments.json)
        case _:
            return _remove(users, arguments.user)


def require_user(users: UserRegistry, name: str) -> User:
    """Return the user whom an id or an e-mail address means.

    Raises:
        UnknownName: There is none.
    """
    user = named_user(users, name)
    if user is None:
        message = f"no user {name!r}; `reprise user list` names them, `reprise user add` adds one"
        raise UnknownName(message)
    return user


def _add(users: UserRegistry, arguments: argparse.Namespace) -> int:
    user_id = arguments.id if arguments.id is not None else secrets.token_hex(6)
    try:
        user = User(id=user_id, email=arguments.email, is_admin=arguments.admin)
    except ValidationError as error:
        message = (
            f"e-mail address {arguments.email!r} with id {user_id!r} cannot be used: an address is "
            "as `ann@example.org`; an id is up to 64 letters, digits, `-`, `_` and `.`, beginning "
            "with a letter or a digit"
        )
        raise BadInput(message) from error
    users.add_user(user)
    print(f"user {user.id}: {user.email}{', admin' if user.is_admin else ''}")
    return 0


def _list(users: UserRegistry, *, as_json: bool) -> int:
    found = users.users()
    if as_json:
        print(json.dumps([user.model_dump(mode="json") for user in found]))
    elif not found:
        print("no users yet; add one with `reprise user add EMAIL`")
    else:
        cells = [[user.id, user.email, "yes" if user.is_admin else "no"] for user in found]
        print(table(cells, ["id", "e-mail", "admin"]))
    return 0


def _remove(users: UserRegistry, name: str) -> int:
    user = require_user(users, name)
    users.remove_user(user.id)
    print(f"removed  user {user.id} ({user.email})")
    return 0
