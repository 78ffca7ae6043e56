"""TPROF_DRIVER=1: compares copies through the driver, whoever calls it, with the stand-in's own tally."""

import pytest
from lib.build import BUILD, STANDIN
from lib.launch import start
from lib.rankfile import named, parsed

FORWARDING = STANDIN / "forwarding"
WAYS = ["linked", "dlsym", "address", "address_v1", "entry_point", "entry_point_by_version"]


class Run:
    """A program on the stand-in, under the preload."""

    def __init__(self, folder, *command, libraries=(STANDIN,), **variables):
        self.done = start(
            [BUILD / command[0], *command[1:]],
            folder,
            libraries=":".join(map(str, libraries)),
            **({"TPROF_EVENTS": "all"} | variables),
        )
        assert (self.done.code, self.done.stderr) == (0, "")
        self.traces, self.tally = self.done.traces, self.done.only_tally()

    def lines(self):
        (file,) = self.traces.iterdir()
        return parsed(file)

    def ledger(self, name_of=lambda name: name):
        """Returns (function, direction, mode) -> [calls, bytes, failed]."""
        (closing,) = named(self.lines(), "tprof_ledger")
        return added(
            ((name_of(row["name"]), row["bucket"], row["mode"]), row["calls"], row["bytes"], row["failed"])
            for row in closing["rows"]
        )

    def counted(self):
        """Returns the same of what the stand-in was asked for."""
        return added(
            ((row["function"], row["kind"], row["mode"]), row["returned"], row["bytes"], row["failed"])
            for row in self.tally["rows"]
        )

    def unseen(self):
        (footer,) = named(self.lines(), "tprof_footer")
        return [noted["kind"] for noted in footer["coverage"]["unseen"]]


def added(rows):
    table = {}
    for key, *figures in rows:
        table[key] = [a + b for a, b in zip(table.get(key, [0, 0, 0]), figures, strict=True)]
    return table


@pytest.mark.parametrize("way", WAYS)
def test_every_copy_of_the_driver_counts_as_it_was_asked_for(tmp_path, way):
    run = Run(tmp_path, "driver_copies", way, TPROF_DRIVER="1")
    assert run.ledger() == run.counted()
    # A runtime asks for its own version only: one function is of another.
    more = -1 if way == "entry_point" else 0
    assert sum(calls for calls, _, _ in run.counted().values()) == 37 + 2 + more
    assert sum(failed for _, _, failed in run.counted().values()) == 1


@pytest.mark.parametrize("way", WAYS)
def test_without_the_setting_nothing_of_the_driver_counts(tmp_path, way):
    run = Run(tmp_path, "driver_copies", way)
    assert not run.traces.exists()
    assert len(run.counted()) > 20


def test_a_runtime_that_is_linked_in_is_seen_through_the_driver(tmp_path):
    run = Run(tmp_path, "runtime_copies_static", TPROF_DRIVER="1")
    assert run.ledger() == run.counted()
    assert run.unseen() == []
    devices = {x["args"]["device"] for x in run.lines() if x["ph"] == "X"}
    assert devices == {1}  # the driver's answer: no wrapped function told


def test_without_the_setting_a_runtime_that_is_linked_in_is_said_to_be_unseen(tmp_path):
    assert not Run(tmp_path, "runtime_copies_static").traces.exists()


@pytest.mark.parametrize("driver", ["0", "1"])
def test_a_call_of_the_runtime_and_the_driver_call_that_it_causes_are_one(tmp_path, driver):
    libraries = [FORWARDING, STANDIN]
    run = Run(tmp_path, "runtime_copies_shared", libraries=libraries, TPROF_DRIVER=driver)
    assert run.ledger(name_of=lambda _: "") == added(
        (("", *key[1:]), *figures) for key, figures in run.counted().items()
    )
    assert all(name.startswith("cudaMemcpy") for name, *_ in run.ledger())


@pytest.mark.parametrize("runtime", ["static", "shared"])
def test_what_a_graph_captured_counts_once_and_per_launch(tmp_path, runtime):
    libraries = [FORWARDING, STANDIN]
    run = Run(tmp_path, f"runtime_graph_{runtime}", libraries=libraries, TPROF_DRIVER="1")
    assert run.ledger(name_of=lambda _: "") == added(
        (("", *key[1:]), *figures) for key, figures in run.counted().items()
    )
    assert run.counted()["cuMemcpyHtoDAsync_v2", "H2D", "replayed"] == [15, 15000, 0]


# The (calls, bytes) to the device that launches executed, by the client's source.
GRAPHS = {
    "own_default_stream": (3, 300),
    "built_cloned_updated": (9, 2 * 100 + 7 * 200),
    "captured_again": (5, 2 * 100 + 3 * 300),
}


def replayed_to_device(table):
    rows = [row for key, row in table.items() if key[1:] == ("H2D", "replayed")]
    return tuple(map(sum, zip(*rows)))[:2]


@pytest.mark.parametrize("situation", GRAPHS)
def test_graphs_of_the_driver_are_counted_as_they_were_launched(tmp_path, situation):
    run = Run(tmp_path, "driver_graphs", situation, TPROF_DRIVER="1")
    assert replayed_to_device(run.counted()) == GRAPHS[situation]
    # A copy that is put into a graph by hand is told, and not counted.
    by_hand = {key: figures for key, figures in run.counted().items() if key[0].startswith("cuGraph")}
    assert run.ledger() == {key: figures for key, figures in run.counted().items() if key not in by_hand}
    assert run.unseen() == (["graph_unknown"] if by_hand else [])
