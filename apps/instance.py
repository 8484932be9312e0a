"""The Dagster instance of a home: its folder, its `dagster.yaml`, its partitions.

Source: specification D16.
"""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import yaml
from dagster._core.definitions.repository_definition import SINGLETON_REPOSITORY_NAME
from dagster._core.remote_origin import (
    ManagedGrpcPythonEnvCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from sqlalchemy.exc import SQLAlchemyError

from apps.dagster_yaml import keep_dagster_yaml
from reprise.errors import StoreError
from resources.settings import Settings

LOCATION_NAME = "reprise"
"""Name of the code location in Dagster, the same in `workspace.yaml` and `reprise ui`."""


def instance_home(settings: Settings) -> Path:
    """Return the folder of the Dagster instance, with a `dagster.yaml` of this version.

    `DAGSTER_HOME` wins where it is set.

    Raises:
        StoreError: The folder cannot be made or written.
    """
    given = os.environ.get("DAGSTER_HOME")
    if given:
        return Path(given).expanduser().absolute()
    folder = settings.home_path / "dagster"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        keep_dagster_yaml(folder)
    except OSError as error:
        message = (
            f"{folder} cannot be written: {error.strerror or error};"
            " set REPRISE_HOME to a folder that can, with space left"
        )
        raise StoreError(message) from error
    return folder


def open_instance(settings: Settings) -> dg.DagsterInstance:
    """Return the Dagster instance of the settings' home.

    Raises:
        StoreError: It cannot be opened.
    """
    home = instance_home(settings)
    os.environ["DAGSTER_HOME"] = str(home)
    with storage_errors(f"the Dagster instance in {home} cannot be opened"), _one_at_a_time(home):
        return dg.DagsterInstance.from_config(str(home))


@contextmanager
def _one_at_a_time(home: Path) -> Iterator[None]:
    """Keep other commands waiting: two that make Dagster's tables at once trip each other up."""
    handle = os.open(home, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def job_origin(job_name: str) -> RemoteJobOrigin:
    """Return where the UI finds a job, so that a run of this process links to it."""
    target = LoadableTargetOrigin(module_name="pipelines.definitions")
    location = ManagedGrpcPythonEnvCodeLocationOrigin(target, LOCATION_NAME)
    return RemoteJobOrigin(RemoteRepositoryOrigin(location, SINGLETON_REPOSITORY_NAME), job_name)


@contextmanager
def storage_errors(what: str) -> Iterator[None]:
    """Turn what Dagster's storage raises into one of our errors.

    Args:
        what: What could not be done, for the message.

    Raises:
        StoreError: Dagster's databases or files failed; the message has the first cause.
    """
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, OSError, dg.DagsterError, yaml.YAMLError) as error:
        message = f"{what}: {_cause(error)}; check its free space, rights and settings"
        raise StoreError(message) from error


def _cause(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, OSError):
        return f"{error.strerror or error} ({error.filename})" if error.filename else str(error)
    return " ".join(str(error).split()) or type(error).__name__
