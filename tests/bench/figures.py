"""A measured figure, its peer, and the table of all figures."""

import dataclasses
import statistics
from collections.abc import Iterable, Sequence


# Units of figures that grow while others use the machine.
TIMES = ("ns", "us", "ms", "s")


class NotMeasured(Exception):
    """A figure is worthless, or cannot be measured here."""


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    if len(values) < 4:
        return min(values), max(values)
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


@dataclasses.dataclass
class Figure:
    """`values` and `peer_values` are of the same run, pair by pair, so that what disturbs the
    machine disturbs both. The limit applies to the ratio or difference that `compare` names, or
    without it to the value itself."""

    name: str
    unit: str
    values: Sequence[float]
    peer: str = ""
    peer_values: Sequence[float] = ()
    compare: str = ""  # "ratio", "difference"
    limit: float | None = None
    aim: float | None = None

    def judged(self) -> list[float]:
        if self.compare == "ratio":
            return [a / b for a, b in zip(self.values, self.peer_values, strict=True)]
        if self.compare == "difference":
            return [a - b for a, b in zip(self.values, self.peer_values, strict=True)]
        return list(self.values)

    def ok(self, busy: bool) -> bool | None:
        """Returns None if there is no limit, or if the machine is too busy to judge a time."""
        if self.limit is None or (busy and self.unit.split(" ")[0] in TIMES):
            return None
        return statistics.median(self.judged()) <= self.limit

    def as_json(self, busy: bool) -> dict:
        return dataclasses.asdict(self) | {
            "median": statistics.median(self.values),
            "judged": statistics.median(self.judged()),
            "ok": self.ok(busy),
        }


def number(value: float) -> str:
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.2f}"


def with_spread(values: Sequence[float], suffix: str = "") -> str:
    text = number(statistics.median(values)) + suffix
    if len(values) == 1:
        return text
    low, high = quartiles(values)
    return f"{text} ({number(low)}..{number(high)})"


def cells(figure: Figure, busy: bool) -> list[str]:
    suffix = {"ratio": " x", "difference": f" {figure.unit} more", "": ""}[figure.compare]
    limit = "" if figure.limit is None else f"<= {number(figure.limit)}"
    if figure.aim is not None:
        limit += f", aim {number(figure.aim)}"
    peer = ""
    if figure.peer:
        peer = f"{figure.peer} {number(statistics.median(figure.peer_values))}"
    return [
        figure.name,
        with_spread(figure.values, " " + figure.unit),
        peer,
        with_spread(figure.judged(), suffix) if figure.compare else "",
        limit,
        {None: "not judged" if limit else "", True: "ok", False: "OVER"}[figure.ok(busy)],
    ]


HEADINGS = ["figure", "median (quartiles)", "beside it", "compared", "limit", ""]


def table(figures: Iterable[Figure], busy: bool) -> str:
    rows = [HEADINGS] + [cells(figure, busy) for figure in figures]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
