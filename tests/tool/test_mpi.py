"""tprof summary, check and report under mpirun: several processes read a share of the files each, and the first says
to the byte what one says alone."""

import pathlib
import shutil
import signal

import pytest
from generator import causes, rank_files
from lib import handmade, mpi
from lib.thorough import some
from lib.tool import tprof

BYS = ("size", "op", "comm", "dtype", "range", "phase", "step", "site", "layer", "rank")
COMMANDS = (
    *(("summary", "--by", by, "--per-rank") for by in BYS),
    ("summary", "--lines", "--top", "7"),
    ("summary", "--json", "--lines", "--hist", "ALLGATHER"),
    ("summary", "--steps", "1-2", "--by", "layer", "--top", "3"),
    ("check",),
    ("check", "--json"),
    ("check", "--no-lines"),
    ("report",),
    ("report", "--json"),
)
FEW = (("summary", "--lines"), ("check",), ("report",), ("report", "--json"))


OPEN_RANGE = '{"cat":"NVTX","ph":"B","name":"never popped","pid":0,"tid":4194311,"ts":1.000,"args":{"unfinished":true}}'


def damage(file: pathlib.Path) -> None:
    """Makes a line of a call unreadable, which shows only when all lines are read."""
    text = file.read_text()
    at = text.index('\n{"name":"nccl', len(text) // 2) + 1
    file.write_text(text[:at] + '{"name":"ncclAllGather","ts":oh},\n' + text[at:])


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    root = tmp_path_factory.mktemp("jobs")
    for name, layout, cause in (
        ("slow", "fsdp", "slow_gpu"),
        ("different", "hsdp", "divergence"),
        ("killed", "pipeline", "killed"),
        ("stuck", "fsdp", "hang"),
        ("damaged", "fsdp_tp", None),
    ):
        rank_files.write(causes.case(layout, 8, cause, 3, 4), root / name, 3)
    for file in (root / "stuck").glob("*.json"):
        handmade.insert(file, OPEN_RANGE)
    damage(root / "damaged/rank-00002.json")
    (root / "damaged/rank-00005.json").write_text("[\n")
    (root / "damaged/rank-00006.json").unlink()
    (root / "damaged/notes.json").write_text('{"no": "trace"}\n')
    return root


def expected(*command):
    done = tprof(*command)
    return (done.returncode, done.stdout, done.stderr)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("job", ["slow", "different", "killed", "stuck", "damaged"])
@pytest.mark.parametrize(("processes", "abi"), [(2, "mpich"), (4, "open"), (7, "mpich")])
def test_several_say_what_one_says(job, processes, abi, jobs, tmp_path):
    for command in COMMANDS:
        whole = (*command, jobs / job)
        code, out, err = expected(*whole)
        said = mpi.together(abi, processes, tmp_path, *whole)
        assert said[0] == (code, out, err), whole
        assert said[1:] == [(code, "", "")] * (processes - 1), whole


def test_the_jobs_differ_and_have_something_to_say(jobs):
    """Else the test above would say little."""
    assert "slow" in expected("report", jobs / "slow")[1]
    assert expected("check", jobs / "different")[0] == 1
    assert "never popped" in expected("check", jobs / "stuck")[1]
    assert "rank-00002.json: byte" in expected("check", jobs / "damaged")[1]
    assert len({expected("summary", "--by", by, jobs / "slow")[1] for by in BYS}) > 6


def test_the_first_process_writes_the_page_and_no_other(jobs, tmp_path):
    assert tprof("report", jobs / "slow", "-o", tmp_path / "alone.html").returncode in (0, 1)
    said = mpi.together("open", 3, tmp_path, "report", jobs / "slow", "-o", tmp_path / "page.html")
    assert {out for _, out, _ in said} == {""}
    assert (tmp_path / "page.html").read_bytes() == (tmp_path / "alone.html").read_bytes()


@pytest.mark.parametrize("abi", ["open", "mpich"])
def test_bad_input_is_one_line_of_the_first_process(abi, jobs, tmp_path):
    for command in (("check", tmp_path / "nowhere"), ("summary", "--by", "range", jobs / "damaged")):
        code, out, err = expected(*command)
        assert (code, out) == (2, "") and err.count("\n") == 1
        said = mpi.together(abi, 4, tmp_path, *command)
        assert said == [(2, "", err)] + [(2, "", "")] * 3


def test_what_can_only_fail_in_the_first_ends_all(jobs, tmp_path):
    (tmp_path / "mine.html").write_text("not a page")
    said = mpi.together("mpich", 3, tmp_path, "report", jobs / "slow", "-o", tmp_path / "mine.html")
    assert [code for code, *_ in said] == [2, 2, 2]
    assert "is no page of tprof report" in said[0][2] and said[1:] == [(2, "", "")] * 2


@pytest.mark.parametrize("dies", [0, 1])
def test_a_process_that_dies_takes_the_others_along(dies, jobs, tmp_path):
    hub = mpi.Hub(tmp_path, 3, pause_after=3)
    try:
        running = mpi.started("open", 3, hub, "check", jobs / "slow")
        assert hub.paused.wait(timeout=60)
        running[dies].send_signal(signal.SIGKILL)
        running[dies].wait(timeout=60)
        hub.go.set()
        said = [process.communicate(timeout=60) for process in running]
    finally:
        hub.close()
    left = [process for process in running if process is not running[dies]]
    assert [process.returncode for process in left] == [2, 2]
    if dies != 0:
        assert "tprof: MPI has ended: another of its processes may have died" in said[0][1]


def test_without_the_library_of_mpi_the_first_says_what_to_do(jobs, tmp_path, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("TPROF_MPI", str(tmp_path / "libmpi.so"))
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    done = tprof("check", jobs / "slow")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "TPROF_MPI" in done.stderr and str(tmp_path / "libmpi.so") in done.stderr
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    done = tprof("check", jobs / "slow")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


def test_without_the_program_that_loads_it_too(jobs, tmp_path, monkeypatch):
    shutil.copy(mpi.TPROF, tmp_path / "tprof")
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setenv("PMI_RANK", "0")
    done = mpi.subprocess.run(
        [tmp_path / "tprof", "check", jobs / "slow"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert str(tmp_path / "tprof-mpi") in done.stderr


@pytest.mark.parametrize(
    "env",
    [
        {"SLURM_NTASKS": "8", "SLURM_PROCID": "0"},  # a batch script
        {"SLURM_NTASKS": "1", "SLURM_STEP_NUM_TASKS": "1", "PMIX_RANK": "0"},  # srun -n1
        {"OMPI_COMM_WORLD_SIZE": "1"},
        {"OMPI_COMM_WORLD_SIZE": "8", "TPROF_MPI": "off"},
    ],
)
def test_a_process_that_is_alone_asks_nobody(env, jobs, monkeypatch):
    alone = expected("check", jobs / "slow")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert expected("check", jobs / "slow") == alone


def test_a_process_of_the_step_may_run_it_for_itself(jobs, monkeypatch):
    """As a training script does in its first process: the others never come, and nothing waits for them."""
    alone = expected("check", jobs / "different")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "8")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    script = ["sh", "-c", '"$@"; exit $?', "sh", mpi.TPROF, "check", jobs / "different"]
    done = mpi.subprocess.run(script, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == alone


def test_other_commands_do_not_ask_mpi(jobs, monkeypatch):
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setenv("TPROF_MPI", "/nowhere/libmpi.so")
    assert tprof("doctor", jobs / "slow").returncode in (0, 1)


@pytest.mark.parametrize("processes", some([2, 1, 7, 4], 2))
@pytest.mark.parametrize("name", mpi.LAUNCHERS)
def test_under_mpirun(name, processes, jobs, tmp_path):
    if not mpi.launcher(name):
        pytest.skip(f"no {mpi.LAUNCHERS[name][0]}: scripts/bootstrap test says what to install")
    for job in ("slow", "damaged"):
        for command in FEW:
            whole = (*command, jobs / job)
            done = mpi.launched(name, processes, *whole)
            assert (done.returncode, done.stdout) == expected(*whole)[:2], done.stderr
    page = tmp_path / "page.html"
    mpi.launched(name, processes, "report", jobs / "slow", "-o", page)
    tprof("report", jobs / "slow", "-o", tmp_path / "alone.html")
    assert page.read_bytes() == (tmp_path / "alone.html").read_bytes()
