"""`reprise savings [--by workflow|project|day]`: what the cache saved so far."""

import argparse
import json

from apps.commands.tables import table
from pipelines.definitions import Wiring
from reprise.cache.savings import total_savings
from reprise.model.savings import Savings, SavingsBy
from resources.settings import load_settings


def main(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    by = SavingsBy(arguments.by)
    rows = list(Wiring(load_settings()).history.savings(by))
    if arguments.json:
        print(json.dumps({"by": by.value, "rows": [row.model_dump() for row in rows]}))
    elif not rows:
        print("no runs yet; run a workflow with `reprise run WORKFLOW PROJECT`")
    else:
        cells = [_cells(row) for row in (*rows, total_savings(rows))]
        print(table(cells, [by.value, *HEADS]))
        if any(row.unpriced for row in rows):
            print("\ndollars leave out steps whose model has no known price")
    return 0


HEADS = ("steps", "hits", "tokens used", "tokens saved", "$ used", "$ saved", "s used", "s saved")


def _cells(row: Savings) -> list[str]:
    return [
        row.group,
        str(row.steps),
        str(row.hits),
        f"{row.tokens_used:,}",
        f"{row.tokens_saved:,}",
        f"{row.cost_micros_used / 1e6:.4f}",
        f"{row.cost_micros_saved / 1e6:.4f}",
        f"{row.seconds_used:.1f}",
        f"{row.seconds_saved:.1f}",
    ]
