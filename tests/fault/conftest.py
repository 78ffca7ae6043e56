import pytest
import runs


@pytest.fixture(scope="session")
def built():
    for path in (runs.LIBTPROF, runs.CLIENT, runs.RING_DUMP, runs.TPROF):
        assert path.exists(), f"{path} is missing: build first (make), or set TPROF_BUILD"
