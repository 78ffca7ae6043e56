"""tprof export --kineto and --inspector. HTA and TensorBoard's profiler read the former with their
own code, and compute what the stand-in and formulas say. The latter has the Inspector's keys."""

import collections
import gzip
import json

import pytest
from lib import figures, handmade, launch, needs
from lib.build import BUILD
from lib.clocks import clock_job
from lib.tool import generate, tprof
from test_summary_ranges import LANE, pushed

RANKS, STEPS, LATENCY_US = 2, 6, 300
COLLECTIVES = {"ncclAllGather": "nccl:all_gather", "ncclReduceScatter": "nccl:reduce_scatter"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Runs a job with device times, whose steps end with the loss that is copied back."""
    run = launch.start(
        [BUILD / "native_trainer", "--ranks", RANKS, "--steps", STEPS],
        tmp_path_factory.mktemp("trained"),
        STANDIN_LATENCY_US=str(LATENCY_US), TPROF_TIMING="events", TPROF_STEP="call:cudaMemcpyAsync@4",
    )  # fmt: skip
    assert run.code == 0, run.stderr
    return run


@pytest.fixture(scope="module")
def kineto(trained):
    folder = trained.traces.parent / "profile"
    done = tprof("export", trained.traces, "--kineto", "-o", folder)
    assert done.returncode == 0 and "computation has no events here" in done.stderr, done.stderr
    return folder


def counted(trained, file):
    """Returns function -> calls and counts of a rank, by the stand-in."""
    total = collections.defaultdict(collections.Counter)
    for (_, function, *_), of in figures.of_plain_names(
        figures.of_tally(trained.tallies()[file.header["pid"]])
    ).items():
        total[function].update(of)
    return total


def traces_of(folder):
    found = {}
    for file in folder.iterdir():
        with gzip.open(file, "rt") as text:
            trace = json.load(text)
        found[trace["distributedInfo"]["rank"]] = trace
    return found


@pytest.fixture(scope="module")
def analysis():
    """Returns a function that gives HTA's analysis of a folder, with all steps."""
    needs.package("hta")
    from hta import trace_analysis as hta

    return lambda folder: hta.TraceAnalysis(trace_dir=str(folder), include_last_profiler_step=True)


def kernels(breakdown, rank):
    """Returns name -> count and sum in us."""
    rows = breakdown[breakdown["rank"] == rank]
    return {
        row["name"]: (round(row["sum (us)"] / row["mean (us)"]), row["sum (us)"]) for _, row in rows.iterrows()
    }


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_hta_computes_the_device_times_that_were_measured(trained, kineto, analysis):
    found = analysis(kineto)
    assert list(found.get_profiler_steps()) == list(range(1, STEPS + 1))
    kinds, all_kernels = found.get_gpu_kernel_breakdown(visualize=False, include_memory_kernels=True)
    assert set(kinds["kernel_type"]) >= {"COMMUNICATION", "MEMORY"} and "COMPUTATION" not in set(kinds["kernel_type"])
    for file in trained.ranks():
        tally, ledger = counted(trained, file), file.ledger_rows()
        rank = kernels(all_kernels, file.rank)
        for function in COLLECTIVES:
            calls, us = rank["ncclKernel_" + function[4:]]
            assert calls == tally[function]["calls"]
            # HTA leaves out parts of microseconds at both ends.
            measured = sum(row["device_ns"] for row in ledger if row["name"] == function) / 1000
            assert max(calls * LATENCY_US, measured) - 2 * calls <= us <= measured
    times = found.get_temporal_breakdown(visualize=False)
    for _, row in times.iterrows():
        assert row["compute_time(us)"] == 0
        assert row["idle_time(us)"] + row["non_compute_time(us)"] == row["kernel_time(us)"]
    assert list(found.get_comm_comp_overlap(visualize=False)["comp_comm_overlap_pctg"]) == [0] * RANKS
    bandwidth = found.get_memory_bw_summary(ranks=list(range(RANKS)))["memory_bw_gbps"]
    for file in trained.ranks():
        copies = [row for row in file.ledger_rows() if row["bucket"] == "H2D"]
        row = bandwidth.loc[file.rank, "Memcpy HtoD"]
        assert row["count"] == sum(r["calls"] for r in copies)
        assert 0 < row["min"] <= row["max"] <= max(2 << r["bytes_class"] for r in copies) / (LATENCY_US * 1000)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_hta_computes_what_is_true_of_a_job_whose_times_are_known(tmp_path, analysis):
    truth = clock_job(tmp_path / "run", 1, 2, 100)
    assert tprof("export", tmp_path / "run", "--kineto", "-o", tmp_path / "out").returncode == 0
    found = analysis(tmp_path / "out")
    _, all_kernels = found.get_gpu_kernel_breakdown(visualize=False)
    times = found.get_temporal_breakdown(visualize=False).set_index("rank")
    for rank in range(2):
        took = sum(left[rank] - came[rank] for came, left in zip(truth["came"], truth["left"])) / 1000
        (calls, us) = kernels(all_kernels, rank)["ncclKernel_AllReduce"]
        # HTA leaves out parts of microseconds at both ends; the clock drifts.
        assert calls == 100 and took * (1 - 2e-5) - 201 <= us <= took * (1 + 2e-5) + 1
        span = (truth["left"][-1][rank] - truth["came"][0][rank]) / 1000
        assert times.loc[rank, "kernel_time(us)"] == pytest.approx(span, rel=2e-5, abs=3)
        assert times.loc[rank, "non_compute_time(us)"] == us


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_tensorboards_profiler_reads_the_folder(trained, kineto):
    needs.package("torch_tb_profiler")
    from torch_tb_profiler import consts
    from torch_tb_profiler.profiler import communication, data

    workers = {}
    for path in kineto.iterdir():
        worker, span = consts.WORKER_PATTERN.match(path.name).groups()
        workers[worker] = span
        profile = data.RunProfileData.parse(worker, 1, str(path), None)
        (file,) = (f for f in trained.ranks() if f.rank == profile.distributed_info["rank"])
        assert profile.distributed_info == {"backend": "nccl", "rank": file.rank, "world_size": RANKS}
        assert profile.steps_names[:3] == ["1", "2", "3"]
        assert profile.has_communication and profile.has_memcpy_or_memset and not profile.has_kernel
        _, totals = communication.analyze_communication_nodes(profile.comm_node_list)
        tally = counted(trained, file)
        for function, name in COLLECTIVES.items():
            calls, size, *_ = totals[name]
            # The profiler takes the size of what goes in.
            inputs = tally[function]["count"] * (RANKS if function == "ncclReduceScatter" else 1)
            assert (calls, size) == (tally[function]["calls"], inputs * 4)
    assert len(workers) == RANKS and len(set(workers.values())) == 1, "workers of one span"


def test_all_ranks_are_on_the_axis_of_the_merged_trace(trained, kineto, tmp_path):
    assert tprof("merge", trained.traces, "-o", tmp_path / "m.json").returncode == 0
    merged = [json.loads(line.rstrip(",")) for line in (tmp_path / "m.json").read_text().splitlines()[1:-1]]
    (base,) = {line["args"]["base_time_ns"] for line in merged if line.get("name") == "tprof_header"}
    for rank, trace in traces_of(kineto).items():
        times = sorted((e["ts"], e["dur"]) for e in trace["traceEvents"] if e.get("cat") in ("kernel", "gpu_memcpy"))
        expected = sorted((e["ts"], e["dur"]) for e in merged if e.get("cat") == "DEVICE" and e["pid"] == rank)
        assert trace["baseTimeNanoseconds"] == base and times == expected


def test_ranges_of_the_program_are_annotations(tmp_path):
    clock_job(tmp_path / "run", 1, 1, 5)
    (file,) = (tmp_path / "run").iterdir()
    range_ = pushed('a "b"', 1.5, 2) | {"pid": 0}
    handmade.insert(file, range_ | {"name": "ProfilerStep#7"}, range_, before='"tprof_comm"')
    assert tprof("export", tmp_path / "run", "--kineto", "-o", tmp_path / "out").returncode == 0
    (trace,) = traces_of(tmp_path / "out").values()
    (event,) = [e for e in trace["traceEvents"] if e.get("cat") == "user_annotation" and "Profiler" not in e["name"]]
    assert (event["name"], event["dur"], event["tid"]) == ('a "b"', 2, range_["tid"] - LANE)


def test_ranks_of_one_process_have_a_file_each(tmp_path):
    run = launch.start([BUILD / "many_ranks", 4, 5], tmp_path, TPROF_TIMING="events")
    assert run.code == 0, run.stderr
    assert tprof("export", run.traces, "--kineto", "-o", tmp_path / "out").returncode == 0
    found = traces_of(tmp_path / "out")
    assert sorted(found) == [0, 1, 2, 3]
    for rank, trace in found.items():
        events = [e for e in trace["traceEvents"] if e.get("cat") == "kernel"]
        names = collections.Counter(e["name"] for e in events)
        assert names == {f"ncclKernel_{name}": 5 for name in ("AllGather", "ReduceScatter", "AllReduce")}
        assert {e["args"]["device"] for e in events} == {rank}
        assert sum(e.get("cat") == "gpu_memcpy" for e in trace["traceEvents"]) == 5 * (rank + 1)


def test_the_inspectors_lines_have_its_keys_and_the_known_times(tmp_path):
    truth = clock_job(tmp_path / "run", 2, 2, 50)
    done = tprof("export", tmp_path / "run", "--inspector", "-o", tmp_path / "out", "--clock", "realtime")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [f"rank-{n:05}.jsonl" for n in range(4)]
    for rank in range(4):
        lines = [json.loads(line) for line in (tmp_path / f"out/rank-{rank:05}.jsonl").read_text().splitlines()]
        assert len(lines) == 50
        for line in lines:
            assert set(line) == {"header", "metadata", "coll_perf"}
            assert set(line["header"]) - {"comm_name"} == {"id", "rank", "n_ranks", "nnodes"}
            assert (line["header"]["rank"], line["header"]["n_ranks"], line["header"]["nnodes"]) == (rank, 4, 2)
            assert line["metadata"]["inspector_output_format_version"] == "v4.0"
            of = line["coll_perf"]
            assert (of["coll"], of["coll_msg_size_bytes"]) == ("AllReduce", 4096)
            took = truth["left"][of["coll_sn"]][rank] - truth["came"][of["coll_sn"]][rank]
            assert of["coll_exec_time_us"] == pytest.approx(took / 1000, rel=2e-5, abs=1)
            assert of["coll_algobw_gbs"] == pytest.approx(4096 / took, rel=1e-3)
            assert of["coll_busbw_gbs"] == pytest.approx(of["coll_algobw_gbs"] * 2 * 3 / 4)
        assert [line["coll_perf"]["coll_sn"] for line in lines] == list(range(50))


def test_the_inspectors_sizes_are_those_of_a_rank(trained, tmp_path):
    assert tprof("export", trained.traces, "--inspector", "-o", tmp_path / "out").returncode == 0
    for file in trained.ranks():
        found = collections.defaultdict(collections.Counter)
        for line in (tmp_path / f"out/rank-{file.rank:05}.jsonl").read_text().splitlines():
            of = json.loads(line)["coll_perf"]
            found["nccl" + of["coll"]].update(calls=1, size=of["coll_msg_size_bytes"])
        tally = counted(trained, file)
        assert {f: (of["calls"], of["size"]) for f, of in found.items()} == {
            f: (tally[f]["calls"], tally[f]["count"] * 4) for f in COLLECTIVES
        }


@pytest.mark.parametrize("format_", ["--kineto", "--inspector"])
def test_without_device_times_there_is_no_output_and_one_line_says_why(format_, tmp_path):
    generate(tmp_path / "run", 2, 100)
    done = tprof("export", tmp_path / "run", format_, "-o", tmp_path / "out")
    assert done.returncode == 2 and "TPROF_TIMING=events" in done.stderr and done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
