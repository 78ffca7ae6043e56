"""Communicators, sequence numbers and signatures mean the same on all ranks of a run."""

import collections

from lib import figures


def by_ordinal(pair):
    """Yields (rank file, our communicator line, the tally's communicator) for all of a run."""
    tallies = pair.traced.tallies()
    for file in pair.traced.ranks():
        expected = tallies[file.header["pid"]]["comms"]
        assert len(file.comms) == len(expected), file.path
        for ours, theirs in zip(file.comms, expected):
            yield file, ours, theirs


def test_size_and_rank_of_every_communicator_are_the_librarys(pair):
    for file, ours, theirs in by_ordinal(pair):
        assert (ours["nranks"], ours["rank"]) == (theirs["nranks"], theirs["rank"]), file.path


def test_ids_are_equal_exactly_where_the_communicator_is_the_same(pair):
    couples = {(ours["id"], theirs["id"]) for _, ours, theirs in by_ordinal(pair)}
    assert couples
    assert len({ours for ours, _ in couples}) == len(couples), "one id for two communicators"
    assert len({theirs for _, theirs in couples}) == len(couples), "two ids for one communicator"


def test_every_rank_of_a_communicator_has_its_line(pair):
    members = collections.defaultdict(list)
    for _, ours, _ in by_ordinal(pair):
        members[ours["id"], ours["nranks"]].append(ours["rank"])
    for (id_, nranks), ranks in members.items():
        assert sorted(ranks) == list(range(nranks)), id_


def collectives(file):
    """Returns communicator's id -> its collectives in order of seq."""
    ids = {comm["comm"]: comm["id"] for comm in file.comms}
    found = collections.defaultdict(list)
    for event in file.events:
        if "comm" in event["args"] and event["cat"] != "P2P":
            found[ids[event["args"]["comm"]]].append(event)
    return {id_: sorted(events, key=lambda e: e["args"]["seq"]) for id_, events in found.items()}


def test_seq_counts_the_collectives_of_a_communicator_without_a_gap(pair):
    for file in pair.traced.ranks():
        for id_, events in collectives(file).items():
            seqs = [event["args"]["seq"] for event in events]
            assert seqs == list(range(seqs[0], seqs[0] + len(seqs))), (file.path, id_)


def test_the_nth_collective_is_the_same_call_on_every_rank(pair):
    fields = ("seq", "count", "dtype", "reduce", "peer")
    sequences = collections.defaultdict(dict)
    for file in pair.traced.ranks():
        for id_, events in collectives(file).items():
            sequences[id_][file.rank] = [
                (event["name"], *(event["args"].get(field) for field in fields))
                for event in events
            ]
    assert sequences or not any(tally["comms"] for tally in pair.traced.tallies().values())
    for id_, per_rank in sequences.items():
        first, *others = per_rank.values()
        assert all(other == first for other in others), id_


def test_send_and_receive_numbers_meet(pair):
    """The nth send of a to b and the nth receive of b from a carry the same number."""
    numbers = collections.defaultdict(lambda: {"ncclSend": [], "ncclRecv": []})
    for file in pair.traced.ranks():
        comms = {comm["comm"]: comm for comm in file.comms}
        for event in file.events:
            if event["cat"] != "P2P":
                continue
            comm = comms[event["args"]["comm"]]
            here, there = comm["rank"], event["args"]["peer"]
            ends = (here, there) if event["name"] == "ncclSend" else (there, here)
            numbers[comm["id"], ends][event["name"]].append(
                (event["args"]["seq"], event["args"]["count"], event["args"]["dtype"])
            )
    for channel, ends in numbers.items():
        assert sorted(ends["ncclSend"]) == sorted(ends["ncclRecv"]), channel


def test_signatures_agree_across_ranks(pair):
    signatures = collections.defaultdict(dict)
    for file in pair.traced.ranks():
        ids = {comm["comm"]: comm["id"] for comm in file.comms}
        for comm, entry in file.signatures().items():
            signatures[ids[comm]][file.rank] = (
                entry["collectives"],
                entry["signature"],
                tuple(entry["marks"]),
            )
    for id_, per_rank in signatures.items():
        assert len(set(per_rank.values())) == 1, (id_, per_rank)


def test_signatures_cover_every_collective_of_the_tally(pair):
    tallies = pair.traced.tallies()
    for file in pair.traced.ranks():
        expected = collections.Counter()
        for key, value in figures.of_tally(tallies[file.header["pid"]]).items():
            bucket, _, _, ordinal, mode = key
            if ordinal is not None and bucket != "P2P" and mode != "replayed":
                expected[ordinal] += value["calls"]
        ordinal = {comm["comm"]: place for place, comm in enumerate(file.comms, start=1)}
        seen = {ordinal[comm]: e["collectives"] for comm, e in file.signatures().items()}
        assert +collections.Counter(seen) == +expected, file.path
