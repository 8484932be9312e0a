"""What every registry of users promises, run on each."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import ValidationError

from reprise.errors import BadInput
from reprise.model.user import User
from reprise.ports import UserRegistry
from resources.memory_users import MemoryUserRegistry
from resources.sqlite_projects import SqliteProjectRegistry
from resources.sqlite_users import SqliteUserRegistry

ANN = User(id="ann", email="Ann@example.org")
BEN = User(id="ben", email="ben@example.org", is_admin=True)


def shared_file(folder: Path) -> UserRegistry:
    projects = SqliteProjectRegistry(folder / "metadata.sqlite")
    projects.add_project("p1", now=datetime(2026, 1, 1, tzinfo=UTC))
    return SqliteUserRegistry(folder / "metadata.sqlite")


REGISTRIES: dict[str, Callable[[Path], UserRegistry]] = {
    "memory": lambda _: MemoryUserRegistry(),
    "sqlite": lambda folder: SqliteUserRegistry(folder / "new" / "users.sqlite"),
    "sqlite-shared-file": shared_file,
}


@pytest.fixture(params=REGISTRIES)
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> UserRegistry:
    return REGISTRIES[request.param](tmp_path)


def test_a_new_registry_is_empty(registry: UserRegistry) -> None:
    assert list(registry.users()) == []
    assert registry.user("ann") is None
    assert registry.user_of_email("ann@example.org") is None
    assert registry.remove_user("ann") is False


def test_users_come_back_field_by_field_and_by_e_mail(registry: UserRegistry) -> None:
    registry.add_user(BEN)
    registry.add_user(ANN)
    assert registry.user("ann") == ANN
    assert registry.user("ben") == BEN
    assert list(registry.users()) == [ANN, BEN]


def test_an_e_mail_address_is_found_whatever_its_letter_case(registry: UserRegistry) -> None:
    registry.add_user(User(id="u", email="Jürgen@Example.ORG"))
    found = registry.user_of_email("JÜRGEN@example.org")
    assert found is not None
    assert found.email == "Jürgen@Example.ORG"
    assert registry.user_of_email("juergen@example.org") is None


def test_an_id_is_not_taken_for_another_by_its_letter_case(registry: UserRegistry) -> None:
    registry.add_user(ANN)
    assert registry.user("Ann") is None


@pytest.mark.parametrize(
    "other",
    [User(id="ann", email="other@example.org"), User(id="other", email="aNN@EXAMPLE.org")],
    ids=["id", "e-mail"],
)
def test_a_second_user_of_one_id_or_address_is_refused(registry: UserRegistry, other: User) -> None:
    registry.add_user(ANN)
    with pytest.raises(BadInput, match=r"user 'ann' with the e-mail address 'Ann@example.org'"):
        registry.add_user(other)
    assert list(registry.users()) == [ANN]


def test_a_removed_user_is_gone_and_the_address_is_free(registry: UserRegistry) -> None:
    registry.add_user(ANN)
    registry.add_user(BEN)
    assert registry.remove_user("ann") is True
    assert registry.remove_user("ann") is False
    assert list(registry.users()) == [BEN]
    registry.add_user(User(id="ann2", email=ANN.email))
    assert registry.user("ann") is None


def test_threads_that_add_one_user_at_once_add_it_once(registry: UserRegistry) -> None:
    def work(index: int) -> bool:
        try:
            registry.add_user(User(id=f"u{index}", email="one@example.org"))
        except BadInput:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(24))) == 1
    assert len(registry.users()) == 1


def test_a_registry_opened_again_knows_its_users(tmp_path: Path) -> None:
    first = SqliteUserRegistry(tmp_path / "users.sqlite")
    first.add_user(ANN)
    first.close()
    assert list(SqliteUserRegistry(tmp_path / "users.sqlite").users()) == [ANN]


@pytest.mark.parametrize("email", ["", "ann", "@x", "ann@", "a b@x", "a@b@c", "a\n@x", "a" * 300])
def test_what_is_no_e_mail_address_makes_no_user(email: str) -> None:
    with pytest.raises(ValidationError):
        User(id="ann", email=email)


@pytest.mark.parametrize("user_id", ["", "a b", "a@b", "../a", "(none)", "a\n", "x" * 65])
def test_what_is_no_id_makes_no_user(user_id: str) -> None:
    with pytest.raises(ValidationError):
        User(id=user_id, email="ann@example.org")
