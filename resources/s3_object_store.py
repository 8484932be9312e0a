"""Objects in a bucket of any S3 endpoint, through boto3.

The client is made on first use, one a process. `head` has short limits of its own: it stands
before every cache hit; what moves bytes has long ones. Large files go in parts; S3 shows an object
only when all of them are there.

Extend tests/integration/test_object_store_contract.py, which all object stores pass; it runs this
one against a real server over HTTP.

Source: specification W9, C7, C8.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from reprise.errors import BadInput, ObjectMissing, StoreError, StoreTimeout, StoreUnusable
from reprise.model.stored import ObjectInfo
from resources.atomic_file import store_error, write_whole
from resources.object_key import checked_key, checked_prefix

if TYPE_CHECKING:  # The stubs are for checking alone, and nothing here is read by Dagster.
    from botocore.config import Config
    from mypy_boto3_s3 import S3Client

DEFAULT_READ_BYTES_MAX = 64 * 2**20
CONNECT_SECONDS = 5.0
READ_SECONDS = 60.0
ATTEMPTS_MAX = 3
HEAD_SECONDS = 1.0
PART_BYTES = 16 * 2**20
PARTS_AT_ONCE = 4

_MISSING_CODES = frozenset({"404", "NoSuchKey", "NotFound"})


@dataclass(frozen=True)
class _Clients:
    process: int
    data: "S3Client"
    head: "S3Client"


@dataclass(frozen=True, kw_only=True)
class S3ObjectStore:
    """An `ObjectStore` in a bucket; safe among threads.

    Without keys, boto3's own chain finds credentials: environment, profile, role of the machine.
    """

    bucket: str = field(kw_only=False)
    """The bucket; it has to exist."""
    prefix: str = ""
    """Begins every object's key in the bucket, such as `reprise/`."""
    endpoint_url: str | None = None
    """Address of another service than Amazon's, such as `http://localhost:8333`."""
    region: str | None = None
    """Region; null takes boto3's own choice, and `us-east-1` at another endpoint."""
    access_key_id: str | None = None
    """Who asks; null takes boto3's own chain."""
    secret_access_key: str | None = field(default=None, repr=False)
    """The secret of `access_key_id`."""
    addressing: Literal["auto", "path", "virtual"] = "auto"
    """Bucket in the path or in the host name; `auto` is the path at another endpoint."""
    head_seconds: float = HEAD_SECONDS
    """Limit of connecting and of answering, each, of one `head`; it is asked once."""
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _made: "list[_Clients]" = field(default_factory=list, init=False, repr=False)
    _bucket_seen: threading.Event = field(default_factory=threading.Event, init=False, repr=False)

    def head(self, key: str) -> ObjectInfo | None:
        """Return what is known of an object, or None; see `ObjectStore`."""
        name = self._name(key)
        return self._head(self._clients().head, key, name)

    def put_bytes(self, key: str, data: bytes, *, media_type: str | None = None) -> ObjectInfo:
        """Store bytes whole or not at all, replacing what was there; see `ObjectStore`."""
        name = self._name(key)
        client = self._clients().data
        with self._wrapped(key):
            if media_type is None:
                client.put_object(Bucket=self.bucket, Key=name, Body=data)
            else:
                client.put_object(Bucket=self.bucket, Key=name, Body=data, ContentType=media_type)
        return self._put_info(client, key, name)

    def put_file(self, key: str, path: Path, *, media_type: str | None = None) -> ObjectInfo:
        """Store a file's bytes whole or not at all, replacing what was there; see `ObjectStore`.

        Raises:
            BadInput: The file cannot be read.
        """
        from boto3.s3.transfer import TransferConfig  # As in _make.

        name = self._name(key)
        client = self._clients().data
        extra = {} if media_type is None else {"ContentType": media_type}
        parts = TransferConfig(
            multipart_threshold=PART_BYTES,
            multipart_chunksize=PART_BYTES,
            max_concurrency=PARTS_AT_ONCE,
        )
        if path.exists() and not path.is_file():  # Opening a pipe would wait for its writer.
            message = f"{str(path)!r} cannot be read: it is no regular file"
            raise BadInput(message)
        try:
            source = path.open("rb")
        except OSError as error:
            message = f"file {str(path)!r} cannot be read: {error.strerror}"
            raise BadInput(message) from error
        with source, self._wrapped(key):
            client.upload_fileobj(source, self.bucket, name, ExtraArgs=extra, Config=parts)
        return self._put_info(client, key, name)

    def get_bytes(self, key: str, *, size_bytes_max: int = DEFAULT_READ_BYTES_MAX) -> bytes:
        """Return an object's bytes; see `ObjectStore`."""
        name = self._name(key)
        client = self._clients().data
        with self._wrapped(key):
            answer = client.get_object(Bucket=self.bucket, Key=name)
            with answer["Body"] as body:
                if answer["ContentLength"] <= size_bytes_max:
                    return body.read()
        message = (
            f"{self._named(key)}: it has {answer['ContentLength']} bytes, more than "
            f"{size_bytes_max}; fetch it to a file instead"
        )
        raise StoreUnusable(message)

    def fetch(self, key: str, target: Path) -> None:
        """Copy an object to a local file, whole or not at all; see `ObjectStore`."""
        name = self._name(key)
        client = self._clients().data

        def fill(stream: BinaryIO) -> None:
            with self._wrapped(key):
                client.download_fileobj(self.bucket, name, stream)

        try:
            write_whole(target, fill)
        except OSError as error:
            raise store_error(error, f"{self._named(key)} to {str(target)!r}") from error

    def local_path(self, key: str) -> Path | None:
        """Return None: no object has a local file."""
        checked_key(key)
        return None

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is no error."""
        name = self._name(key)
        client = self._clients().data
        with self._wrapped(key):
            client.delete_object(Bucket=self.bucket, Key=name)

    def scan(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects whose key begins with the prefix, by rising key; see `ObjectStore`.

        The listing is read whole first, about 1 kB an object: not every service lists by key.
        """
        begin = self.prefix + checked_prefix(prefix)
        found: list[ObjectInfo] = []
        pages = self._clients().data.get_paginator("list_objects_v2")
        with self._wrapped(prefix):
            for page in pages.paginate(Bucket=self.bucket, Prefix=begin):
                found.extend(
                    ObjectInfo(
                        key=item["Key"].removeprefix(self.prefix),
                        size_bytes=item["Size"],
                        etag=item["ETag"].strip('"'),
                        modified_at=item["LastModified"],
                    )
                    for item in page.get("Contents", ())
                )
        yield from sorted(found, key=lambda info: info.key)

    def url(self, key: str) -> str:
        """Return its `s3://` address."""
        return f"s3://{self.bucket}/{self._name(key)}"

    def _name(self, key: str) -> str:
        return self.prefix + checked_key(key)

    def _named(self, key: str) -> str:
        return f"object 's3://{self.bucket}/{self.prefix}{key}'"

    def _head(self, client: "S3Client", key: str, name: str) -> ObjectInfo | None:
        try:
            with self._wrapped(key):
                answer = client.head_object(Bucket=self.bucket, Key=name)
        except ObjectMissing:
            self._check_bucket(client)
            return None
        self._bucket_seen.set()
        return ObjectInfo(
            key=key,
            size_bytes=answer["ContentLength"],
            etag=answer["ETag"].strip('"'),
            modified_at=answer["LastModified"],
        )

    def _put_info(self, client: "S3Client", key: str, name: str) -> ObjectInfo:
        info = self._head(client, key, name)
        if info is None:
            message = f"{self._named(key)}: it was removed while it was being stored; try again"
            raise StoreError(message)
        return info

    def _check_bucket(self, client: "S3Client") -> None:
        # A HEAD answers 404 for a missing bucket too. That is no word about the object: the cache
        # would forget every entry over a bucket name that is spelled wrong.
        if self._bucket_seen.is_set():
            return
        try:
            with self._wrapped(""):
                client.head_bucket(Bucket=self.bucket)
        except ObjectMissing as error:
            message = (
                f"bucket {self.bucket!r} at {self.endpoint_url or 'Amazon S3'} does not exist; "
                "make it, or correct its name in the settings"
            )
            raise StoreUnusable(message) from error
        self._bucket_seen.set()

    def _clients(self) -> _Clients:
        with self._lock:
            # A child must not share its parent's connections.
            if not self._made or self._made[-1].process != os.getpid():
                self._made.append(self._make())
            return self._made[-1]

    def _make(self) -> _Clients:
        # Imported here, because boto3 takes 0.3 to 2 s, which a local store need not pay.
        from boto3.session import Session
        from botocore.exceptions import BotoCoreError

        region = self.region or ("us-east-1" if self.endpoint_url else None)
        session = Session(
            aws_access_key_id=self.access_key_id,
            aws_secret_access_key=self.secret_access_key,
            region_name=region,
        )
        data = self._config(CONNECT_SECONDS, READ_SECONDS, ATTEMPTS_MAX)
        head = self._config(self.head_seconds, self.head_seconds, 1)
        try:
            return _Clients(
                process=os.getpid(),
                data=session.client("s3", endpoint_url=self.endpoint_url, config=data),
                head=session.client("s3", endpoint_url=self.endpoint_url, config=head),
            )
        except (BotoCoreError, ValueError) as error:
            message = f"bucket {self.bucket!r}: the S3 settings cannot be used: {error}"
            raise StoreUnusable(message) from error

    def _config(self, connect_seconds: float, read_seconds: float, attempts: int) -> "Config":
        from botocore.config import Config  # As in _make.

        style = self.addressing
        if style == "auto" and self.endpoint_url:
            style = "path"
        return Config(
            connect_timeout=connect_seconds,
            read_timeout=read_seconds,
            retries={"mode": "standard", "total_max_attempts": attempts},
            s3={"addressing_style": style},
            max_pool_connections=16,
            # Other services than Amazon's do not all know the newer checksum headers.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )

    @contextmanager
    def _wrapped(self, key: str) -> Iterator[None]:
        """Turn what boto3 raises into our errors."""
        from boto3.exceptions import Boto3Error  # As in _make.
        from botocore.exceptions import (  # As in _make.
            BotoCoreError,
            ClientError,
            ConnectTimeoutError,
            ReadTimeoutError,
        )

        try:
            yield
        except ClientError as error:
            raise self._refusal(key, error.response) from error
        except (ConnectTimeoutError, ReadTimeoutError) as error:
            message = f"{self._named(key)}: no answer in time: {error}; see whether the store is up"
            raise StoreTimeout(message) from error
        except (BotoCoreError, Boto3Error) as error:
            message = f"{self._named(key)}: {error}; see whether the store is up"
            raise StoreError(message) from error

    def _refusal(self, key: str, response: object) -> StoreError:
        error = response.get("Error", {}) if isinstance(response, dict) else {}
        code = str(error.get("Code", "unknown"))
        named = self._named(key)
        if code in _MISSING_CODES:
            return ObjectMissing(f"{named}: there is none; run the step that made it again")
        if code == "NoSuchBucket":
            return StoreUnusable(
                f"{named}: the bucket does not exist; make it, or correct its name"
            )
        if code in ("403", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch"):
            return StoreUnusable(
                f"{named}: access is denied ({code}); check the key and its rights"
            )
        return StoreError(f"{named}: the store answered {code}: {error.get('Message', '')}")
