"""Servers that the integration tests share, started once when the first test asks."""

from collections.abc import Iterator

import pytest

from tests.local_model import LocalModel, local_model
from tests.postgres_server import PostgresTestServer, postgres_server
from tests.s3_server import S3Server, s3_server


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresTestServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def llama_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalModel]:
    with local_model(tmp_path_factory.mktemp("llama")) as server:
        yield server
