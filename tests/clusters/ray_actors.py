"""The row of Ray: actors whose environment has the preload."""

import importlib.util
import pathlib
import sys

from clusters.place import NotRun, Place, Row, expect, headers
from lib.build import CLIENTS, STANDIN, TPROF

RANKS = 2
JOB = pathlib.Path(__file__).parent / "ray_job.py"


def quiet(place: Place) -> dict[str, str]:
    return {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "RAY_TMPDIR": place.short}


def needs_ray() -> None:
    if importlib.util.find_spec("ray") is None:
        raise NotRun("no Python package ray")


def trained(place: Place, text: str, ran: str) -> Row:
    expect(f"steps: {[6] * RANKS}" in text, "the actors did not train")
    found = place.checked(0)
    expect(found["ranks"] == list(range(RANKS)), f"ranks {found['ranks']}")
    # Ray has no variable for it; the communicator does say which rank an actor is.
    expect([head["rank"] for head in headers(place.traces)] == [None] * RANKS, "Ray tells a rank")
    return place.counted(ran, list(range(RANKS)))


def actors(place: Place) -> Row:
    needs_ray()
    given = place.preload() | {"LD_LIBRARY_PATH": str(STANDIN), "PYTHONPATH": str(CLIENTS)}
    words = [f"{name}={value}" for name, value in given.items()]
    text = place.run([sys.executable, JOB, RANKS, *words], **quiet(place))
    expect(not place.complaints(text), place.complaints(text))
    return trained(place, text, "ray.init(runtime_env=…)")


def in_front(place: Place) -> Row:
    needs_ray()
    command = [TPROF, "run", "--out", place.traces, "--", sys.executable, JOB, RANKS]
    text = place.run(command, PYTHONPATH=CLIENTS, **quiet(place))
    expect(f"Totals over {RANKS} processes" in text, "no summary of all ranks")
    return trained(place, text, "tprof run -- python …, which starts Ray")


ROWS = {"ray": actors, "ray-front": in_front}
