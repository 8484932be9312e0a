"""What survives a digest: the bench's own verdict on the two strategies, on fewer outputs."""

import pytest

from bench.budget_retention import measure_retention


def test_sampled_keeps_some_of_every_class_and_more_than_plain_on_average(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert measure_retention(of_each_kind=5), capsys.readouterr().out
