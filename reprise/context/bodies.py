"""Bodies: values as canonical JSON, kept once per project by digest.

References and records name a body by its digest; so a value that many steps see is written once,
and what travels between steps stays small.

Source: specification D3, W5.
"""

import json

from pydantic import JsonValue

from reprise.canonical import canonical_json, sha256_hex
from reprise.errors import StoreError
from reprise.ports import ObjectStore

BODY_BYTES_MAX = 256 * 2**20


class Bodies:
    """Values by digest in an object store."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def put(self, project_id: str, value: JsonValue) -> str:
        """Keep a value; return the SHA-256 of its canonical JSON, as 64 hexadecimal digits.

        Raises:
            NotCanonical: It does not survive a JSON round trip.
            StoreError: The object store failed.
        """
        data = canonical_json(value).encode()
        digest = sha256_hex(data)
        key = _key(project_id, digest)
        info = self._objects.head(key)
        if info is None or info.size_bytes != len(data):
            self._objects.put_bytes(key, data, media_type="application/json")
        return digest

    def get(self, project_id: str, digest: str) -> JsonValue:
        """Return the value of this digest.

        Raises:
            ObjectMissing: It is gone.
            StoreError: It is damaged, or the object store failed.
        """
        key = _key(project_id, digest)
        data = self._objects.get_bytes(key, size_bytes_max=BODY_BYTES_MAX)
        if sha256_hex(data) != digest:
            message = (
                f"{key} is damaged: its bytes do not match its digest; delete it and run again"
            )
            raise StoreError(message)
        value: JsonValue = json.loads(data)
        return value


def _key(project_id: str, digest: str) -> str:
    return f"projects/{project_id}/bodies/{digest[:2]}/{digest}.json"
