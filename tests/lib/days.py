"""Jobs of the generator on two days, and what `tprof diff` finds between them."""

import pytest
from generator import causes, rank_files
from lib.tool import told

RANKS = 8
AGAIN = 1000  # seeds of the other day


def made(folder, layout, cause=None, seed=1, ranks=RANKS, steps=6, again=None, like=None):
    """Writes a job; with `like` a healthy one of that cause's kind. Returns its folder and the case."""
    model = causes.WITHOUT.get(like, {})
    with pytest.MonkeyPatch.context() as patch:
        if like is not None:
            patch.setitem(causes.CAUSES, "nothing", lambda loop, rng: (loop, causes.Truth(None)))
            patch.setitem(causes.WITHOUT, "nothing", model)
            cause = "nothing"
        case = causes.case(layout, ranks, cause, seed, steps, again=again)
    rank_files.write(case, folder, seed)
    return folder, case


def days(tmp_path, layout, cause, seed=1, **more):
    """Returns a healthy job, the same with the cause on another day, and the truth about the latter."""
    a, _ = made(tmp_path / "a", layout, seed=seed, like=cause, **more)
    b, case = made(tmp_path / "b", layout, cause, seed, again=AGAIN + seed, **more)
    return a, b, case


def diff(a, b, *options):
    code, found = told("diff", a, b, *options)
    assert code == (1 if found["failed"] else 2 if found["not_known"] else 0)
    return found


def changed(found, of):
    return [t for t in found["times"] if t["changed"] and t["of"] == of]


def counts(found, function):
    return [c for c in found["counts"] if c["kind"]["name"] == function]


def loop_of(layout, seed, cause=None):
    return causes.healthy(layout, RANKS, seed).but(**causes.WITHOUT.get(cause, {}))
