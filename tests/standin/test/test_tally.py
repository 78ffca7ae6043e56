"""The tally has every call that a program entered or returned from, even if it was killed."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from lib import tally

CLIENT = os.environ["STANDIN_TALLY_CLIENT"]

# function, dtype, comm, kind, mode: entered, returned, failed, count, bytes
EXPECTED = {
    ("cudaMemcpyAsync", "byte", None, "H2D", "direct"): (1, 1, 0, 100, 100),
    ("cudaMemcpy", "byte", None, "D2H", "direct"): (1, 1, 0, 50, 50),
    ("cudaMemcpy2D", "byte", None, "H2D", "direct"): (1, 1, 0, 30, 30),
    ("cudaMemcpy", "byte", None, "H2D", "direct"): (1, 0, 1, 0, 0),
    ("ncclAllGather", "float16", 1, None, "direct"): (1, 1, 0, 10, 40),
    ("ncclBcast", "int64", 2, None, "direct"): (1, 1, 0, 7, 56),
    ("ncclAllGather", "int8", None, None, "direct"): (1, 0, 1, 0, 0),
    ("ncclReduceScatter", "float32", 1, None, "direct"): (2, 1, 1, 4, 32),
    ("ncclSend", "int8", 1, None, "direct"): (1, 0, 1, 0, 0),
    ("ncclSend", "uint8", 1, None, "direct"): (1, 1, 0, 5, 5),
    ("ncclRecv", "uint8", 1, None, "direct"): (1, 1, 0, 5, 5),
    ("ncclAllReduce", "bfloat16", 1, None, "captured"): (1, 1, 0, 6, 12),
    ("ncclAllReduce", "bfloat16", 1, None, "replayed"): (3, 3, 0, 18, 36),
    ("cudaMemcpyAsync", "byte", None, "D2H", "captured"): (1, 1, 0, 20, 20),
    ("cudaMemcpyAsync", "byte", None, "D2H", "replayed"): (3, 3, 0, 60, 60),
}


class Tally(unittest.TestCase):

    def run_client(self, **environment):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([CLIENT], check=True, timeout=120, stderr=subprocess.DEVNULL,
                           env={**os.environ, "STANDIN_TALLY": folder, **environment})
            processes = tally.read_all(folder)
        self.assertEqual(len(processes), 2)
        return sorted(processes, key=lambda process: process["comms"][0]["rank"])

    @staticmethod
    def rows(process):
        keys = "function", "dtype", "comm", "kind", "mode"
        values = "entered", "returned", "failed", "count", "bytes"
        return {tuple(row[key] for key in keys): tuple(row[value] for value in values)
                for row in process["rows"]}

    def test_every_call_is_counted_under_the_name_that_was_called(self):
        for process in self.run_client():
            self.assertEqual(self.rows(process), EXPECTED)

    def test_communicators_have_equal_ids_on_all_their_ranks_only(self):
        first, second = self.run_client()
        for rank, process in enumerate((first, second)):
            self.assertEqual([(comm["ordinal"], comm["nranks"], comm["rank"])
                              for comm in process["comms"]], [(1, 2, rank), (2, 1, 0)])
        self.assertEqual(first["comms"][0]["id"], second["comms"][0]["id"])
        self.assertEqual(len({comm["id"] for process in (first, second)
                              for comm in process["comms"]}), 3)

    def test_a_killed_process_has_entered_the_call_and_not_returned(self):
        _, killed = self.run_client(STANDIN_DIE="1:ncclRecv:1", STANDIN_TIMEOUT_S="1")
        rows = self.rows(killed)
        self.assertEqual(rows["ncclRecv", "uint8", 1, None, "direct"], (1, 0, 0, 0, 0))
        self.assertEqual(rows["ncclSend", "uint8", 1, None, "direct"], (1, 0, 0, 0, 0))
        self.assertEqual(rows["ncclReduceScatter", "float32", 1, None, "direct"], (2, 0, 1, 0, 0))
        self.assertEqual(rows["ncclAllGather", "float16", 1, None, "direct"], (1, 1, 0, 10, 40))
        self.assertNotIn(("ncclAllReduce", "bfloat16", 1, None, "captured"), rows)


if __name__ == "__main__":
    unittest.main()
