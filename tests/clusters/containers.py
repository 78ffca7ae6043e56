"""Rows of Docker: a Debian 12 that never saw tprof, with the folder of the library mounted."""

import contextlib
import pathlib
import subprocess

from clusters.place import NATIVE, NotRun, Place, Row, Wrong, expect, path_of, until
from lib import tally
from lib.build import BUILD, LIBTPROF, STANDIN
from lib.tool import tprof

IMAGE = "tprof-debian:12"
RANKS = 4


@contextlib.contextmanager
def docker_here(place: Place):
    """Yields a docker command: one of a daemon of our own, with the image in it."""
    daemon, client = path_of("dockerd"), path_of("docker")
    folder = pathlib.Path(place.short)
    command = [client, "-H", f"unix://{folder}/socket"]
    options = ["--data-root", folder / "data", "--exec-root", folder / "exec", "-H", f"unix://{folder}/socket"]
    options += ["--pidfile", folder / "pid", "--iptables=false", "--bridge=none", "--storage-driver", "vfs"]
    with (place.folder / "dockerd.log").open("w") as log:
        server = subprocess.Popen([daemon, *options], stdout=log, stderr=log)
    try:
        try:
            asked = [*command, "info"]
            until(lambda: subprocess.run(asked, capture_output=True, check=False).returncode == 0, limit=60)
        except Exception as why:
            raise NotRun("dockerd does not start here: see dockerd.log") from why
        import_debian(place, command)
        yield command
    finally:
        server.terminate()
        server.wait()
        subprocess.run(["rm", "-rf", folder / "data", folder / "exec"], check=False)


def import_debian(place: Place, docker: list) -> None:
    root = BUILD / "clusters" / "debian-12.tar"
    if not root.exists():
        debootstrap = path_of("debootstrap")
        root.parent.mkdir(parents=True, exist_ok=True)
        made = pathlib.Path(place.short) / "root"
        plain = {"LD_LIBRARY_PATH": None, "RES_OPTIONS": None}
        try:
            place.run([debootstrap, "--variant=minbase", "bookworm", made], limit=900, **plain)
        except Wrong as why:
            raise NotRun("debootstrap could not make a Debian 12") from why
        place.run(["tar", "-C", made, "-cf", f"{root}.new", "."])
        pathlib.Path(f"{root}.new").rename(root)
        subprocess.run(["rm", "-rf", made], check=False)
    place.run([*docker, "import", root, IMAGE])


def words(place: Place, **more: object) -> list:
    """Returns the options of `docker run`, as scripts/README.md has them, and the stand-in's."""
    given = place.preload() | {"LD_LIBRARY_PATH": STANDIN, "STANDIN_TALLY": place.tally, "TMPDIR": place.folder} | more
    mounts = {place.folder, BUILD, pathlib.Path(LIBTPROF).resolve().parent, pathlib.Path(STANDIN).resolve()}
    mounts |= {pathlib.Path(NATIVE).resolve().parent, pathlib.Path(STANDIN).resolve().parent}
    volumes = [word for mount in sorted(mounts) for word in ("-v", f"{mount}:{mount}")]
    return [*volumes, *(word for name, value in given.items() for word in ("-e", f"{name}={value}"))]


def one_container(place: Place) -> Row:
    with docker_here(place) as docker:
        command = [*docker, "run", "--rm", "--network=none", *words(place), IMAGE, NATIVE]
        text = place.run([*command, "--ranks", RANKS, "--steps", 6])
    expect(not place.complaints(text), place.complaints(text))
    place.checked(0)
    return place.counted("docker run -v … -e LD_PRELOAD=…", list(range(RANKS)), note="four ranks in a container")


def each_rank_alone(place: Place) -> Row:
    """Process 1 of four containers, on hosts of different names and one boot."""
    with docker_here(place) as docker:
        for rank in range(RANKS):
            (place.folder / f"tally-{rank}").mkdir()
            more = {
                "RANK": rank, "WORLD_SIZE": RANKS, "LOCAL_RANK": rank, "NATIVE_TRAINER_ID": place.folder / "id",
                "STANDIN_TALLY": place.folder / f"tally-{rank}",
            }  # fmt: skip
            options = ["-d", "--name", f"rank{rank}", "--network=none", "--ipc=host", *words(place, **more)]
            place.run([*docker, "run", *options, IMAGE, NATIVE, "--steps", 6])
        for rank in range(RANKS):
            place.run([*docker, "wait", f"rank{rank}"])
            text = place.run([*docker, "logs", f"rank{rank}"])
            expect(not place.complaints(text), place.complaints(text))
    found = place.checked(0)
    expect(found["ranks"] == list(range(RANKS)), f"ranks {found['ranks']}")
    row = Row("docker run, a container for each rank", note="each rank is process 1 of its container")
    for rank in range(RANKS):
        own = place.folder / f"only-{rank}"
        own.mkdir()
        (own / "rank.json").write_text((place.traces / f"rank-{rank:05}.json").read_text())
        one = place.counted("", [rank], own, tally.by_pid(place.folder / f"tally-{rank}"))
        row.processes, row.ours, row.theirs = row.processes + 1, row.ours + one.ours, row.theirs + one.theirs
    return row


def kill(place: Place, *options: object, before, status: int, how: tuple = ()) -> str:
    """Kills a container when `before` is true. Returns what check then finds."""
    with docker_here(place) as docker:
        command = [*docker, "run", "-d", "--name", "job", "--network=none", *options, *words(place), IMAGE]
        place.run([*command, NATIVE, "--ranks", RANKS, "--steps", 100000000])
        until(before)
        place.run([*docker, "kill", "job"])
        place.run([*docker, "rm", "-f", "job"])
    found = place.checked(status)
    expect(found["ranks"] == list(range(RANKS)), f"ranks {found['ranks']}")
    # 1 says that something is lost.
    expect(tprof("recover", *how, place.traces).returncode == int("--force" in how), "tprof recover")
    return "check says: " + ", ".join(sorted({finding["kind"] for finding in found["findings"]}))


def killed(place: Place) -> Row:
    """Docker gives /dev/shm 64 MiB, so the rings are beside the traces, and hold all that was counted."""
    found = kill(place, before=lambda: all_longer(place, 100_000), status=1)
    return place.counted("docker kill", list(range(RANKS)), short=1, note=found)


def killed_with_memory(place: Place) -> Row:
    """With --shm-size the rings are in the container's memory, and go with it. A snapshot each 10 s is left. From
    outside nobody can tell at once that the ranks are dead."""
    whole = ("--shm-size=2g",)
    found = kill(place, *whole, before=lambda: snapshots(place) == RANKS, status=0, how=("--force",))
    row = place.counted("docker run --shm-size=2g, docker kill", list(range(RANKS)), short=1 << 60, note=found)
    place.checked(1)
    expect(0 < row.ours <= row.theirs, f"{row.ours} of {row.theirs} calls")
    return row


def snapshots(place: Place) -> int:
    return len([f for f in place.traces.glob(".*.snapshot") if f.stat().st_size])


def all_longer(place: Place, size: int) -> bool:
    return len([f for f in place.traces.glob("*.json") if f.stat().st_size > size]) == RANKS


ROWS = {
    "docker": one_container,
    "docker-ranks": each_rank_alone,
    "docker-kill": killed,
    "docker-kill-shm": killed_with_memory,
}
