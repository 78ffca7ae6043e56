"""The outcome of a row's runs."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Outcome:
    ran: str
    calls: int | None  # that the independent side counted
    difference: int | None  # sum of all figures' differences; None where nothing is counted
    note: str = ""


class Failed(Exception):
    """The client did not come to its end, or ended differently from how it does without us."""
