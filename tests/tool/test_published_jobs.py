"""`tprof report` of real jobs whose truth others published: shared/data/external beside the repository
has them, and says where they come from."""

import gzip
import subprocess
import sys

import pytest
from lib.build import REPO
from lib.tool import told

EXTERNAL = REPO.parent / "shared/data/external"
pytestmark = pytest.mark.skipif(not EXTERNAL.is_dir(), reason="shared/data/external is not here")


@pytest.mark.parametrize("steps", [None, 4], ids=["all", "4"])
@pytest.mark.parametrize(
    "name, ranks, share",
    [
        ("AR", "0", 0.494),  # one worker was slowed on purpose: what a step is shorter by without that
        ("ST", "6,7", 0.185),  # the last stage has more layers
    ],
)
def test_who_holds_up_a_pipeline_and_what_that_costs(name, ranks, share, steps, tmp_path):
    lines = gzip.decompress((EXTERNAL / f"straggler/{name}.csv.gz").read_bytes()).splitlines()
    numbers = sorted({int(line.split(b",")[3]) for line in lines})[:steps]
    trace = tmp_path / "trace.csv.gz"
    trace.write_bytes(gzip.compress(b"\n".join(x for x in lines if int(x.split(b",")[3]) in numbers)))
    made = [trace, EXTERNAL / f"straggler/meta-{name}.yaml", tmp_path / name]
    subprocess.run([sys.executable, EXTERNAL / "straggler.py", *made], check=True, capture_output=True)
    costly = [f for f in told("report", tmp_path / name)[1]["findings"] if "cost" in f]
    assert [(f["kind"], f["ranks"]) for f in costly] == [("slow_gpu", ranks)]
    assert costly[0]["cost"]["share"] == pytest.approx(share, abs=0.05)
