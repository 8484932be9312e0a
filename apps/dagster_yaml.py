"""The `dagster.yaml` of a home: made, brought up to date while nobody has changed it.

After a change of the clone's `dagster.yaml`, append its digest to `SHIPPED_DIGESTS`.
"""

import hashlib
import logging
import os
from pathlib import Path

import yaml

from resources.settings import data_path

logger = logging.getLogger(__name__)

SHIPPED_DIGESTS = (
    "ef88d87d61a7d7aece18ff48938f1b5f34caf8c888ae544a0c1871aef350446d",
    "2e4b3361d34270d5fbbf709aa1180d052660941e698e77b3c7c716cfc59f3a69",
    "348ce1d47f0d4857651eff590ad68a734747bae9dc5e6200543b7b41e5dd6f3d",
)
"""SHA-256 of each version that was shipped, the newest last."""

_TOLD = ".dagster.yaml.told"
"""Beside the file: the digest of the version that its owner was told of."""


def keep_dagster_yaml(folder: Path) -> None:
    """Make the folder's `dagster.yaml`, or replace one that an older version made.

    A file that a person has changed is left alone; what it lacks is told once.

    Raises:
        OSError: It cannot be read or written.
    """
    config = folder / "dagster.yaml"
    shipped = data_path("dagster.yaml")
    newest = shipped.read_bytes()
    try:
        own = config.read_bytes()
    except FileNotFoundError:
        _write(config, newest)
        return
    if own == newest:
        return
    if hashlib.sha256(own).hexdigest() in SHIPPED_DIGESTS:
        _write(config, newest)
        return
    missing = _missing(own, newest)
    digest = hashlib.sha256(newest).hexdigest()
    told = folder / _TOLD
    if not missing or (told.exists() and told.read_text("utf-8") == digest):
        return
    logger.warning(
        "%s is not as this version ships it and is left alone; it lacks %s: copy that from %s",
        config,
        ", ".join(f"`{name}`" for name in missing),
        shipped,
    )
    _write(told, digest.encode())


def _missing(own: bytes, newest: bytes) -> list[str]:
    """Return the parts of the newest version that a file does not have."""
    try:
        mine = yaml.safe_load(own)
    except yaml.YAMLError:
        # Dagster says what is wrong with it.
        return []
    mine = mine if isinstance(mine, dict) else {}
    wanted = yaml.safe_load(newest)
    missing = [name for name in wanted if name not in mine]
    coordinator = mine.get("run_coordinator")
    if (
        isinstance(coordinator, dict)
        and coordinator.get("class") != (wanted["run_coordinator"]["class"])
    ):
        missing.append("run_coordinator")
    return sorted(missing)


def _write(path: Path, data: bytes) -> None:
    part = path.with_name(f".{path.name.lstrip('.')}.{os.getpid()}.part")
    part.write_bytes(data)
    part.replace(path)
