"""`tprof report` of real jobs whose truth others published: shared/data/external beside the repository
has them, and says where they come from."""

import subprocess
import sys

import pytest
from lib.build import REPO
from lib.tool import told

EXTERNAL = REPO.parent / "shared/data/external"
pytestmark = pytest.mark.skipif(not EXTERNAL.is_dir(), reason="shared/data/external is not here")


@pytest.mark.parametrize(
    "name, ranks, share",
    [
        ("AR", "0", 0.494),  # one worker was slowed on purpose: what a step is shorter by without that
        ("ST", "6,7", 0.185),  # the last stage has more layers
    ],
)
def test_who_holds_up_a_pipeline_and_what_that_costs(name, ranks, share, tmp_path):
    made = [EXTERNAL / f"straggler/{name}.csv.gz", EXTERNAL / f"straggler/meta-{name}.yaml", tmp_path / name]
    subprocess.run([sys.executable, EXTERNAL / "straggler.py", *made], check=True, capture_output=True)
    costly = [f for f in told("report", tmp_path / name)[1]["findings"] if "cost" in f]
    assert [(f["kind"], f["ranks"]) for f in costly] == [("slow_gpu", ranks)]
    assert costly[0]["cost"]["share"] == pytest.approx(share, abs=0.05)
