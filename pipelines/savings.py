"""The asset `reprise/savings`: what the cache saved, as a table, a picture and plotted numbers.

Materialise it to see the state now; each materialisation adds a point to the plots.

Source: specification D10.
"""

import base64
import io
from collections.abc import Callable, Sequence

import dagster as dg
from PIL import Image, ImageDraw, ImageFont

from reprise.cache.savings import total_savings
from reprise.model.savings import Savings, SavingsBy
from reprise.ports import HistoryStore

PLOT_DAYS_MAX = 30
_WIDTH, _HEIGHT, _MARGIN = 640, 220, 28
_USED, _SAVED = "#c0662c", "#2f7d4f"


def savings_asset(history: Callable[[], HistoryStore]) -> dg.AssetsDefinition:
    """Return the asset; it reads the history when it is materialised."""

    @dg.asset(
        key=["reprise", "savings"],
        group_name="reprise",
        kinds={"report"},
        description="Tokens, money and seconds that the step cache saved so far.",
    )
    def savings() -> dg.MaterializeResult[None]:
        store = history()
        tables = {by: list(store.savings(by)) for by in SavingsBy}
        total = total_savings(tables[SavingsBy.DAY])
        return dg.MaterializeResult(
            metadata={
                "steps": total.steps,
                "hits": total.hits,
                "tokens_saved": total.tokens_saved,
                "cost_usd_saved": total.cost_micros_saved / 1e6,
                "seconds_saved": round(total.seconds_saved, 1),
                "seconds_used": round(total.seconds_used, 1),
                **{
                    f"by_{by.value}": dg.MetadataValue.md(_markdown(by, rows))
                    for by, rows in tables.items()
                },
                "plot": dg.MetadataValue.md(_picture(tables[SavingsBy.DAY])),
            }
        )

    return savings


def _markdown(by: SavingsBy, rows: Sequence[Savings]) -> str:
    lines = [
        f"| {by.value} | steps | hits | tokens saved | $ saved | seconds saved |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {row.group} | {row.steps} | {row.hits} | {row.tokens_saved:,}"
        f" | {row.cost_micros_saved / 1e6:.4f} | {row.seconds_saved:.1f} |"
        for row in rows
    ]
    return "\n".join(lines)


def _picture(days: Sequence[Savings]) -> str:
    """Return bars of seconds used and saved a day, as a Markdown picture."""
    shown = days[-PLOT_DAYS_MAX:]
    image = Image.new("RGB", (_WIDTH, _HEIGHT), "white")
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(12)
    draw.text((_MARGIN, 6), "seconds a day:", fill="black", font=font)
    draw.text((_MARGIN + 90, 6), "used", fill=_USED, font=font)
    draw.text((_MARGIN + 125, 6), "saved", fill=_SAVED, font=font)
    most = max([1.0, *(max(day.seconds_used, day.seconds_saved) for day in shown)])
    floor = _HEIGHT - _MARGIN
    draw.line((_MARGIN, floor, _WIDTH - _MARGIN, floor), fill="black")
    draw.text((4, _MARGIN), f"{most:.0f}", fill="black", font=font)
    room = (_WIDTH - 2 * _MARGIN) / max(1, len(shown))
    for place, day in enumerate(shown):
        left = _MARGIN + place * room
        bars = ((day.seconds_used, _USED, 0.1), (day.seconds_saved, _SAVED, 0.5))
        for value, colour, offset in bars:
            top = floor - (floor - _MARGIN) * value / most
            box = (left + room * offset, top, left + room * (offset + 0.35), floor)
            draw.rectangle(box, fill=colour)
    if shown:
        draw.text((_MARGIN, floor + 6), shown[0].group, fill="black", font=font)
        draw.text((_WIDTH - _MARGIN - 66, floor + 6), shown[-1].group, fill="black", font=font)
    data = io.BytesIO()
    image.save(data, "PNG", optimize=True)
    return f"![savings](data:image/png;base64,{base64.b64encode(data.getvalue()).decode()})"
