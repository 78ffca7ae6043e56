"""tprof run --with-torch-profiler: PyTorch's profiler is started from outside. Here a client asks as the
profiler does; e2e/test_torch_profiler.py has PyTorch itself."""

import gzip
import json
import subprocess
import sys

import pytest
from lib import launch
from lib.build import BUILD, TPROF

# Asks as libkineto does, writes what it is told to, and becomes a rank.
CLIENT = """
import json, os, socket, struct, sys, time
ours = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
folder = os.environ["KINETO_IPC_SOCKET_DIR"]
ours.bind(folder + "/dynoconfigclient" + "0" * 36)
ours.settimeout(30)

def ask(kind, head=b"req", ancestors=(1,)):
    body = struct.pack(f"<iiq{1 + len(ancestors)}i", kind, 1 + len(ancestors), 0, os.getpid(), *ancestors)
    ours.sendto(struct.pack("<Q32s", len(body), head) + body, folder + "/dynolog")

ask(3, b"what")  # of this nobody knows what to say
ours.sendto(b"short", folder + "/dynolog")
answers = []
def answer():
    message = ours.recv(65536)
    assert struct.unpack_from("<Q32s", message) == (len(message) - 40, b"req".ljust(32, bytes(1)))
    answers.append(dict(line.split("=", 1) for line in message[40:].decode().splitlines()))
    return answers[-1]

ask(1), answer()
for _ in range(2):
    ask(3)
    told = answer()
log = told["ACTIVITIES_LOG_FILE"].replace(".json", f"_{os.getpid()}.json")
event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": time.time_ns() / 1000, "dur": 2}
if "writes" in sys.argv:
    with open(log, "w") as file:
        json.dump({"traceEvents": [event], "baseTimeNanoseconds": 0}, file)
    ask(3), answer()
names = ("KINETO_USE_DAEMON", "KINETO_LOG_LEVEL", "KINETO_CONFIG")
with open("told.json", "w") as file:
    env = {name: os.environ.get(name) for name in names}
    json.dump([answers, env, log, os.getpid(), open(env["KINETO_CONFIG"]).read()], file)
os.execv(sys.argv[1], [sys.argv[1], "--steps", "3"])
"""


@pytest.fixture
def traced(tmp_path):
    def start(*words, options=(), code=CLIENT, **settings):
        (tmp_path / "client.py").write_text(code)
        rank = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
        more = rank | settings | {"NATIVE_TRAINER_ID": str(tmp_path / "id")}
        env = launch.environment(tmp_path, preload=False, **more)
        (tmp_path / "tally").mkdir(exist_ok=True)
        client = [sys.executable, tmp_path / "client.py", BUILD / "native_trainer", *words]
        run = [TPROF, "run", "--quiet", "--out", tmp_path / "out", "--with-torch-profiler"]
        command = list(map(str, [*run, *options, "--", *client]))
        return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)

    return start


def test_who_asks_is_told_the_steps_and_what_it_writes_is_merged_with_its_rank(traced, tmp_path):
    done = traced("writes", options=("--torch-steps", "20-23"))
    assert done.returncode == 0, done.stderr
    answers, env, log, pid, base = json.loads((tmp_path / "told.json").read_text())
    # The profiler counts steps from 0, and begins when the given one has ended: after 18 come a warmup and
    # 20.
    told = {
        "PROFILE_START_ITERATION": "18", "ACTIVITIES_WARMUP_ITERATIONS": "1", "ACTIVITIES_ITERATIONS": "4",
        "ACTIVITIES_DURATION_MSECS": "0",
    }
    # It is told nothing while it traces and when it has traced; else it is told as often as it asks.
    files = [answer.pop("ACTIVITIES_LOG_FILE", None) for answer in answers]
    assert answers == [{}, told, told, {}]
    assert len(files[1]) < 100 and log.endswith(f"_{pid}.json")
    assert env["KINETO_USE_DAEMON"] == "1" and env["KINETO_LOG_LEVEL"] == "5"
    assert base == "ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n"
    assert sorted(file.name for file in (tmp_path / "out/torch").iterdir()) == ["merged.json.gz", "rank-00000.json"]
    with gzip.open(tmp_path / "out/torch/merged.json.gz", "rt") as file:
        lines = json.load(file)
    (mm,) = [line for line in lines if line["name"] == "aten::mm"]
    assert (mm["pid"], mm["cat"]) == (0, "OTHER,cpu_op")
    assert any(line.get("args", {}).get("op") == "ncclAllGather" for line in lines)
    folder = log.rpartition("/traces/")[0]
    assert not list(tmp_path.glob(folder.lstrip("/"))) and "merged.json.gz" in done.stderr


def test_who_writes_nothing_and_who_asks_nothing_is_said(traced, tmp_path):
    done = traced()
    assert done.returncode == 0 and "asked for steps 10-12" in done.stderr and "wrote no trace" in done.stderr
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["rank-00000.json"]
    done = traced(code="import os, sys\nos.execv(sys.argv[1], [sys.argv[1], '--steps', '3'])\n")
    assert done.returncode == 0 and done.stderr.count("\n") == 1
    assert "no process asked for it" in done.stderr


@pytest.mark.parametrize("name", ["KINETO_USE_DAEMON", "KINETO_IPC_SOCKET_DIR"])
def test_where_the_user_has_a_daemon_it_stays_his(traced, tmp_path, name):
    code = "import os, sys\nprint([(k, os.environ[k]) for k in sorted(os.environ) if 'KINETO' in k])\n"
    done = traced(code=code, **{name: "mine"})
    assert done.returncode == 0 and done.stdout == f"{[(name, 'mine')]}\n"
    assert done.stderr.count("\n") == 1 and f"{name} is already set" in done.stderr


def test_what_the_user_set_for_the_profiler_stays(traced):
    code = "import os, sys\nprint([os.environ[k] for k in ('KINETO_CONFIG', 'KINETO_LOG_LEVEL')])\n"
    done = traced(code=code, KINETO_CONFIG="/my.conf", KINETO_LOG_LEVEL="1")
    assert done.stdout == "['/my.conf', '1']\n"


def test_steps_that_can_not_be_are_refused_before_the_command_runs(traced):
    for options in (("--torch-steps", "2-5"), ("--torch-steps", "5-2"), ("--torch-steps", "soon")):
        done = traced(options=options, code="print('ran')")
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1) and "--torch-steps" in done.stderr
