"""Every training run is made once without and once with the preload, and shared by all tests."""

import dataclasses
import importlib.util

import pytest
from lib import figures, rankfile
from lib.build import LIBTPROF, STANDIN
from lib.cases import CASES
from lib.launch import Run, start, torchrun


@dataclasses.dataclass(frozen=True)
class Pair:
    """The same program twice."""

    plain: Run
    traced: Run

    def ranks(self) -> list[rankfile.RankFile]:
        return rankfile.read_folder(self.traced.traces)

    def tallies(self) -> dict[int, dict]:
        """By process id."""
        return {tally["pid"]: tally for tally in figures.read_tallies(self.traced.tally)}


@pytest.fixture(scope="session")
def built():
    for path in (LIBTPROF, STANDIN / "libcudart.so.13"):
        assert path.exists(), f"{path} is missing: build first (make), or set TPROF_BUILD"


@pytest.fixture(scope="session")
def pair_of(built, tmp_path_factory):
    """name of a case -> its Pair; made when a test first asks for it."""
    pairs: dict[str, Pair] = {}

    def get(name: str) -> Pair:
        if name not in pairs:
            case = CASES[name]
            folder = tmp_path_factory.mktemp(name)
            command = torchrun(case.script, case.ranks, case.args)
            pairs[name] = Pair(
                plain=start(command, folder / "plain", preload=False),
                traced=start(command, folder / "traced", preload=True),
            )
        return pairs[name]

    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    return get


@pytest.fixture(scope="session", params=sorted(CASES))
def case(request) -> str:
    return request.param


@pytest.fixture(scope="session")
def pair(case, pair_of) -> Pair:
    return pair_of(case)
