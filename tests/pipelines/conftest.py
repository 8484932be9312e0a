import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipelines.engine import Engine


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = Engine(tmp_path)
    yield made
    sys.stdout.write("\n".join(made.failures))
    made.instance.dispose()
