"""The part of the matrix that is small enough for every run: NCCL's own libraries of the oldest and of the newest year."""

import nccl
import pytest
import rows
import venvs
from lib import cuda
from lib.build import BUILD

CHOSEN = ("nvidia-nccl-cu11==2.16.5", "nvidia-nccl-cu13==2.32.3")


@pytest.mark.parametrize("key", CHOSEN)
def test_an_nccl_of_another_year_works_as_without_us_and_every_refused_call_is_counted(
    key, tmp_path
):
    if cuda.library_path() is None:
        pytest.skip(f"no {' and '.join(cuda.SONAMES)} of NVIDIA's on this machine")
    (row,) = rows.selected([key])
    try:
        venv = venvs.make(row)
    except venvs.CannotInstall as error:
        pytest.skip(f"{key} can't be installed: {error}")
    outcome = nccl.run(row, venv, BUILD, tmp_path / "runs")
    assert outcome.calls > 20
    assert outcome.difference == 0, outcome
