"""`waited` of device times: what the program measures around the calls in which it waits for its device."""

import json

import pytest
from lib.launch import start, without_agent

pytestmark = pytest.mark.timed

KERNEL_MS = 20


@pytest.mark.parametrize("how", ["synchronize", "event", "item", "never"])
def test_a_call_says_for_how_long_threads_had_waited_since_the_one_before(how, tmp_path):
    run = start(
        without_agent("waits.py", 1, ("--waits", how)), tmp_path,
        TPROF_TIMING="events", STANDIN_KERNEL_US=str(KERNEL_MS * 1000),
    )  # fmt: skip
    assert run.code == 0, run.stderr
    measured = [seconds * 1e3 for seconds in json.loads(run.stdout.splitlines()[-1])]
    lines = [line for line in run.only_rank().lines if line.get("cat") == "DEVICE" and line["name"] == "ncclAllReduce"]
    lines.sort(key=lambda line: line["args"]["seq"])
    # An .item() waits behind the copy that it makes, whose own line comes before the wait.
    waited = [line["args"].get("waited", 0) / 1e3 for line in lines[-len(measured) :]]
    for number, (told, true) in enumerate(zip(waited, measured, strict=True)):
        if number == 0:
            continue  # behind the setup, which waits as well
        assert (told > 0) == (how != "never" and number % 3 != 2), (number, waited, measured)
        assert told == pytest.approx(true, abs=KERNEL_MS / 2), (number, waited, measured)
        assert told <= true, (number, waited, measured)  # the call is within what the script measures
