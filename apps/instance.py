"""The Dagster instance of a home: its folder, its `dagster.yaml`, its partitions.

Source: specification D16.
"""

import os
from pathlib import Path

import dagster as dg

from reprise.errors import StoreError
from resources.settings import Settings, data_path


def instance_home(settings: Settings) -> Path:
    """Return the folder of the Dagster instance, made with its `dagster.yaml` when it is not there.

    `DAGSTER_HOME` wins where it is set.

    Raises:
        StoreError: The folder cannot be made or written.
    """
    given = os.environ.get("DAGSTER_HOME")
    if given:
        return Path(given).expanduser().absolute()
    folder = settings.home_path / "dagster"
    config = folder / "dagster.yaml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not config.exists():
            part = folder / f".dagster.yaml.{os.getpid()}.part"
            part.write_bytes(data_path("dagster.yaml").read_bytes())
            part.replace(config)
    except OSError as error:
        message = (
            f"{folder} cannot be written: {error.strerror or error};"
            " set REPRISE_HOME to a folder that can, with space left"
        )
        raise StoreError(message) from error
    return folder


def open_instance(settings: Settings) -> dg.DagsterInstance:
    """Return the Dagster instance of the settings' home."""
    home = instance_home(settings)
    os.environ["DAGSTER_HOME"] = str(home)
    return dg.DagsterInstance.from_config(str(home))
