"""How long calls waited for other ranks, how long they transferred and who came last is what the
simulation knows, though each host has its own clock."""

import json
import re

import pytest
from generator import causes, rank_files
from lib.tool import summary_of, tprof

RANKS = 16
CLOCKS_NS = 20_000  # by which the hosts' clocks may be wrong, for a call


def told_and_true(folder, layout, cause, seed, ranks=RANKS):
    """Returns the rows of summary --by wait and of the truth, by communicator, bucket and size."""
    made = causes.case(layout, ranks, cause, seed, 4)
    rank_files.write(made, folder, seed)
    truth = json.loads(folder.with_name(folder.name + ".truth.json").read_text())["exchanges"]
    told = summary_of(folder, "--by", "wait")["waits"]
    assert told["known"] and told["step_stride"] == 1
    run_id = f"synthetic-{made.loop.shape}-{seed}"
    ids = {name: rank_files.id_of(run_id, name) for name in made.comms}
    return (
        {(r["communicator"], r["bucket"], r["bytes_class"]): r for r in told["rows"]},
        {(ids[r["comm"]], r["bucket"], r["bytes_class"]): r for r in truth},
        made,
    )


@pytest.mark.parametrize(
    ("layout", "cause", "ranks"),
    [
        ("fsdp_tp", "slow_gpu", 16), ("hsdp", None, 16), ("moe", "slow_loader", 16),
        ("pipeline", "slow_gpu", 8), ("pipeline", None, 8), ("pipeline", None, 16), ("pipeline", "slow_loader", 16),
    ],
)  # fmt: skip
def test_waits_and_transfers_are_those_of_the_simulation(layout, cause, ranks, tmp_path):
    """No collective spans the two hosts of the pipelines of 16 ranks: their messages put the clocks on one."""
    told, true, _ = told_and_true(tmp_path / "job", layout, cause, 3, ranks)
    assert told.keys() == true.keys()
    assert any(bucket == "P2P" for _, bucket, _ in told) == (layout == "pipeline")
    for key, row in true.items():
        mine = told[key]
        assert mine["calls"] == mine["known"] == sum(calls for calls, _, _ in row["ranks"].values())
        for part, of in (("ranks", "rank"), ("steps", "step")):
            assert [str(r[of]) for r in mine[part]] == sorted(row[part], key=int)
            for r in mine[part]:
                calls, wait, transfer = row[part][str(r[of])]
                assert r["calls"] == calls
                assert r["wait_ns"] == pytest.approx(wait, abs=calls * CLOCKS_NS), (key, of, r)
                assert r["transfer_ns"] == pytest.approx(transfer, abs=calls * CLOCKS_NS), (key, of, r)
        assert mine["wait_ns"] == sum(r["wait_ns"] for r in mine["ranks"])
        assert mine["transfer_ns"] == sum(r["transfer_ns"] for r in mine["ranks"])


def test_who_came_last_is_told_as_far_as_clocks_can_tell(tmp_path):
    told, true, made = told_and_true(tmp_path / "job", "fsdp_tp", "slow_gpu", 3)
    [slow] = made.truth.ranks
    seen = 0
    for key, row in true.items():
        mine = {str(r["rank"]): r for r in told[key]["ranks"]}
        assert sum(r["last"] for r in mine.values()) <= told[key]["meetings"]
        times, late = row["last"].get(str(slow), (0, 0))
        if late < times * 10 * CLOCKS_NS or str(slow) not in mine:
            continue
        seen += 1
        assert mine[str(slow)]["last"] == pytest.approx(times, abs=1 + times / 10)
        assert mine[str(slow)]["late_ns"] == pytest.approx(late, rel=0.05)
        assert mine[str(slow)]["late_ns_max"] <= mine[str(slow)]["late_ns"]
    assert seen >= 2


def test_the_later_side_of_a_message_is_told(tmp_path):
    told, true, _ = told_and_true(tmp_path / "job", "pipeline", "slow_gpu", 3, 8)
    for key, row in true.items():
        if key[1] != "P2P":
            continue
        for r in told[key]["ranks"]:
            times, late = row["last"].get(str(r["rank"]), (0, 0))
            assert r["last"] == pytest.approx(times, abs=1 + times / 5)
            assert r["late_ns"] == pytest.approx(late, abs=times * CLOCKS_NS + late / 20)


@pytest.mark.parametrize("wrong", ['"comm":99,', '"calls":0,"comm":'])
@pytest.mark.parametrize("layout", ["pipeline", "fsdp_tp"])
def test_a_time_that_can_be_of_no_call_tells_no_wait(layout, wrong, tmp_path):
    """It names a communicator that its rank does not have, or is of no call at all."""
    made = causes.case(layout, 8, None, 3, 4)
    rank_files.write(made, tmp_path / "job", 3)
    for file in (tmp_path / "job").glob("rank-*.json"):
        lines = file.read_text().splitlines(keepends=True)
        for n, line in enumerate(lines):
            if n % 7 == 0 and line.startswith('{"cat":"DEVICE"'):
                lines[n] = re.sub(r'"comm":(\d+),', lambda m: wrong + ("" if "99" in wrong else m[1] + ","), line)
        file.write_text("".join(lines))
    for command in (["report"], ["summary", "--by", "wait"], ["diff", tmp_path / "job"]):
        assert tprof(*command, tmp_path / "job").returncode in (0, 1, 2), command
    rows = [r for r in summary_of(tmp_path / "job", "--by", "wait")["waits"]["rows"] if r["nranks"] > 1]
    assert 0 < sum(r["known"] for r in rows) < sum(r["calls"] for r in rows)


def test_bandwidth_is_that_of_the_transfer_without_the_wait(tmp_path):
    """The machine's links have one speed: the busbw of large calls is that, whoever came late."""
    told, _, made = told_and_true(tmp_path / "job", "fsdp_tp", "slow_gpu", 3)
    hosts = {name: {made.machine.host_of(r) for r in members} for name, members in made.comms.items()}
    large = [r for r in told.values() if r["bytes_class"] >= 22]
    assert large
    for row in large:
        [name] = [n for n in hosts if rank_files.id_of(f"synthetic-{made.loop.shape}-3", n) == row["communicator"]]
        link = made.machine.between if len(hosts[name]) > 1 else made.machine.within
        latency = made.machine.latency_ns
        ns = row["usual_transfer_ns"] - latency
        assert row["busbw_GBps"] * row["usual_transfer_ns"] / ns == pytest.approx(link, rel=0.1)
        assert row["busbw_GBps"] <= 1.05 * link


def reported(folder, *options):
    return json.loads(tprof("report", "--json", *options, folder).stdout)


@pytest.mark.parametrize("cause", [None, "slow_link"])
def test_a_transfer_below_half_of_the_peak_is_a_finding_where_it_is_exposed(cause, tmp_path):
    """All ranks are on one communicator, so no other one shows that its link is slow."""
    made = causes.case("fsdp", RANKS, cause, 4, 4, {"params": 80_000_000, "layer_ns": 1_500_000})
    rank_files.write(made, tmp_path / "job", 4)
    slowest = min(made.loop.links.values(), default=1.0)
    assert slowest < 0.45 or cause is None
    for peak, spans in (("400", 400), ("intra=300,inter=40", 40), ("inter=40", 40)):
        told = reported(tmp_path / "job", "--peak", peak)
        [large] = {r["bucket"]: r for r in told["waits"]["rows"] if r["bytes_class"] >= 24}.keys() & {"ALLGATHER"}
        [row] = [r for r in told["waits"]["rows"] if r["bucket"] == large and r["bytes_class"] >= 24]
        assert row["peak_share"] == pytest.approx(slowest * made.machine.between / spans, rel=0.1)
        found = [f for f in told["findings"] if f["kind"] == "below_peak"]
        assert bool(found) == (row["peak_share"] < 0.5)
        for f in found:
            assert f["ranks"] == "0-15" and f["communicator"] == row["communicator"]
            assert f["cost"]["ns_per_step"] > 0 and "GB/s between hosts" in f["text"]
    assert not [f for f in reported(tmp_path / "job")["findings"] if f["kind"] == "below_peak"]


def test_without_its_name_a_role_is_sure_only_by_those_that_cross_it(tmp_path):
    """Tensor groups of four ranks, and data groups of one rank of each: the sentence says what is slow."""
    made = causes.case("fsdp_tp", RANKS, "slow_link", 0)
    rank_files.write(made, tmp_path / "job", 0)
    [slow] = [f for f in reported(tmp_path / "job")["findings"] if f["kind"] == "slow_link"]
    assert "on the sharding communicator of ranks" in slow["text"], slow["text"]


@pytest.mark.parametrize(
    ("layout", "roles"),
    [
        ("hsdp", {"shard": 2, "replicate": 8}),
        ("pipeline", {"data": 4, "pipeline": 4}),
        ("fsdp", {"shard": 1}),
        ("fsdp_tp", {"shard": 4, "tensor": 4}),
    ],
)
def test_roles_are_sure_where_communicators_cross(layout, roles, tmp_path):
    rank_files.write(causes.case(layout, RANKS, None, 1), tmp_path / "job", 1)
    families = reported(tmp_path / "job")["comms"]["families"]
    assert {f["role"]: f["n"] for f in families if f["role"] and "?" not in f["role"]} == roles


@pytest.mark.parametrize("peak", ["fast", "intra=", "outer=3", "-4", "0"])
def test_a_peak_that_is_none_is_refused(peak, tmp_path):
    done = tprof("report", "--peak=" + peak, tmp_path)
    assert done.returncode == 2 and "--peak: expected GB/s" in done.stderr and peak in done.stderr
