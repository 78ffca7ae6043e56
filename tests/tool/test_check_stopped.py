"""tprof check where a process is stopped."""

import signal

from lib.commanded import commanded
from lib.runs import until
from lib.tool import told


def test_a_stopped_process_is_named(tmp_path):
    with commanded(tmp_path) as job:
        job.does("gather", 5)

        def hangs():
            _, found = told("check", job.traces, "--stuck-after", "1")
            return [f for f in found["findings"] if f["kind"] == "hang"]

        job.process.send_signal(signal.SIGSTOP)
        (stopped,) = until(hangs)
        assert stopped["ranks"] == [0] and stopped["severity"] == "error"
        assert stopped["next"].startswith(f"let it go on: kill -CONT {job.process.pid} on ")
        job.process.send_signal(signal.SIGCONT)
        job.does("gather", 1)
        until(lambda: not hangs())
