"""A real S3 server for tests: SeaweedFS on free local ports, its data in a temporary folder.

`s3_server(folder)` starts it in about four seconds and kills it at the end; the kernel kills it too
when the test process dies. Nobody but this machine can reach it, and it sends no telemetry.
"""

import ctypes
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from boto3.session import Session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from reprise.errors import StoreError
from resources.s3_object_store import S3ObjectStore

START_SECONDS_MAX = 60.0
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class S3Server:
    endpoint_url: str
    access_key_id: str
    secret_access_key: str
    limited_key_id: str
    """A key that may list nothing and read nothing."""
    bucket: str

    def store(self, prefix: str = "") -> S3ObjectStore:
        return S3ObjectStore(
            self.bucket,
            prefix=prefix,
            endpoint_url=self.endpoint_url,
            access_key_id=self.access_key_id,
            secret_access_key=self.secret_access_key,
            # Two loaded cores must not fail a test that is not about time.
            head_seconds=30.0,
        )


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    ports = _free_ports(8)
    server = S3Server(
        endpoint_url=f"http://127.0.0.1:{ports[6]}",
        access_key_id="test-key",
        secret_access_key="test-secret",
        limited_key_id="limited-key",
        bucket="test-bucket",
    )
    log = folder / "weed.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            _command(folder, ports, server),
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            preexec_fn=_die_with_parent,
        )
    try:
        _make_bucket(server, process, log)
        yield server
    finally:
        process.kill()
        process.wait(timeout=30)


def _command(folder: Path, ports: list[int], server: S3Server) -> list[str]:
    identities = folder / "identities.json"
    names: tuple[tuple[str, list[str]], ...] = (
        (server.access_key_id, ["Admin", "Read", "Write", "List"]),
        (server.limited_key_id, []),
    )
    identities.write_text(
        json.dumps(
            {
                "identities": [
                    {
                        "name": key,
                        "credentials": [{"accessKey": key, "secretKey": server.secret_access_key}],
                        "actions": actions,
                    }
                    for key, actions in names
                ]
            }
        )
    )
    (folder / "data").mkdir()
    master, master_grpc, volume, volume_grpc, filer, filer_grpc, s3, s3_grpc = ports
    options = {
        "dir": folder / "data",
        "ip": "127.0.0.1",
        "ip.bind": "127.0.0.1",
        "filer": "true",
        "filer.port": filer,
        "filer.port.grpc": filer_grpc,
        "filer.localSocket": folder / "filer.sock",
        "master.electionTimeout": "1s",
        "master.port": master,
        "master.port.grpc": master_grpc,
        "master.telemetry": "false",
        "master.volumeSizeLimitMB": 64,
        "s3": "true",
        "s3.autoCreateBucket": "false",
        "s3.config": identities,
        "s3.iam": "false",
        "s3.localSocket": folder / "s3.sock",
        "s3.port": s3,
        "s3.port.grpc": s3_grpc,
        "s3.port.iceberg": 0,
        "s3.port.lance": 0,
        "volume.max": 20,
        "volume.port": volume,
        "volume.port.grpc": volume_grpc,
    }
    weed = Path(sys.executable).parent / "weed"
    return [str(weed), "server", *(f"-{name}={value}" for name, value in options.items())]


def _make_bucket(server: S3Server, process: "subprocess.Popen[bytes]", log: Path) -> None:
    client = Session().client(
        "s3",
        endpoint_url=server.endpoint_url,
        aws_access_key_id=server.access_key_id,
        aws_secret_access_key=server.secret_access_key,
        region_name="us-east-1",
        config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
    )
    deadline = time.monotonic() + START_SECONDS_MAX
    has_bucket = False
    while True:
        try:
            if not has_bucket:
                client.create_bucket(Bucket=server.bucket)
                has_bucket = True
            client.put_object(Bucket=server.bucket, Key="ready", Body=b"1")
            client.delete_object(Bucket=server.bucket, Key="ready")
        except (BotoCoreError, ClientError) as error:
            # Its parts come up one by one; each refuses in its own way until then.
            if process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.1)
                continue
            message = f"the S3 server did not start: {error}\n{log.read_text()[-2000:]}"
            raise StoreError(message) from error
        return


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
