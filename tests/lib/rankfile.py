"""Reads what libtprof.so wrote, by the contract's page alone: one JSON value per line."""

import collections
import dataclasses
import json
import pathlib
import re



def accepted(call: dict) -> bool:
    """Returns whether the library accepted a call, by the arguments of its line. 7 is ncclInProgress."""
    return call.get("result", 0) in ((0, 7) if "comm" in call else (0,))


@dataclasses.dataclass(frozen=True)
class RankFile:
    path: pathlib.Path
    lines: list[dict]  # all of them, as they are
    header: dict
    comms: list[dict]  # in order of creation
    events: list[dict]  # the X lines of calls, ranges and device times
    ledgers: list[dict]
    footer: dict | None

    @property
    def rank(self) -> int:
        return self.header["rank"]

    def ledger_rows(self) -> list[dict]:
        """Returns the cumulative rows."""
        return self.ledgers[-1]["rows"] if self.ledgers else []

    def signatures(self) -> dict[int, dict]:
        return {entry["comm"]: entry for entry in self.ledgers[-1]["comms"]}


def lines_of(file: pathlib.Path) -> list[str]:
    """Returns the lines of a trace that hold an object, as text without the comma."""
    lines = pathlib.Path(file).read_text().split("\n")
    return [line.rstrip(",") for line in lines if line not in ("[", "]", "")]


def parsed(file: pathlib.Path) -> list[dict]:
    return [json.loads(line) for line in lines_of(file)]


def parsed_so_far(file: pathlib.Path) -> list[dict]:
    """Does the same for a file that is being written, with its complete lines."""
    whole, _, _ = pathlib.Path(file).read_text().rpartition(",\n")
    return [json.loads(line.removesuffix(",")) for line in whole.split("\n")[1:]]


def named(lines: list[dict], name: str) -> list[dict]:
    """Returns the arguments of all lines of this name."""
    return [line["args"] for line in lines if line["name"] == name]


def rings(folder: pathlib.Path) -> dict[int, pathlib.Path]:
    """Returns rank -> its ring file, for those that are still there."""
    found = {}
    for path in folder.glob("*.json"):
        with path.open() as file:
            line = next(line for line in file if '"tprof_header"' in line)
        header = json.loads(line.removesuffix(",\n"))["args"]
        if header["ring"] and (ring := folder / header["ring"]).exists():
            found[header["rank"]] = ring
    return found


def closed(path: pathlib.Path) -> list[dict]:
    """Returns the lines of a file that was closed."""
    text = path.read_text()
    assert text.startswith("[\n") and text.endswith("\n]\n"), f"{path}: not a closed array of lines"
    found = json.loads(text)
    assert len(found) == text.count("\n") - 2, f"{path}: not a line for each"
    try:
        from lib.contract import refused
    except ModuleNotFoundError:  # of jsonschema_rs, which `make bench` and gpu-check's Python may not have
        return found
    # One in ten of the calls in the middle of a long file is held against the contract.
    wrong = refused([*found[:2000], *found[2000:-500:10], *found[-500:]] if len(found) > 10_000 else found)
    assert wrong is None, f"{path}: not as the contract says: {json.dumps(wrong)[:2000]}"
    return found


def read(path: pathlib.Path) -> RankFile:
    body = closed(path)
    headers, footers = named(body, "tprof_header"), named(body, "tprof_footer")
    assert len(headers) == 1, f"{path}: {len(headers)} headers"
    # Each communicator has a line where it was made, and another after the closing ledger.
    comms = {comm["comm"]: comm for comm in named(body, "tprof_comm")}
    if footers:
        closing = max(i for i, line in enumerate(body) if line["name"] == "tprof_ledger")
        again = named(body[closing:], "tprof_comm")
        assert again == [comms[number] for number in sorted(comms)], f"{path}: {again}"
    return RankFile(
        path=path,
        lines=body,
        header=headers[0],
        comms=[comms[number] for number in sorted(comms)],
        events=[line for line in body if line["ph"] == "X" and line["cat"] not in ("GRAPH", "BUSY", "COMM")],
        ledgers=named(body, "tprof_ledger"),
        footer=footers[0] if footers else None,
    )


def read_folder(folder: pathlib.Path) -> list[RankFile]:
    """Returns all rank files of a run, in order of rank. Any other file in the folder is an error,
    unless it is a window's file or a node's."""
    files = [file for file in sorted(folder.iterdir()) if not is_node(file)] if folder.exists() else []
    # The page of `tprof run` is for people.
    files = [file for file in files if file.name != "report.html"]
    foreign = [file.name for file in files if file.suffix != ".json"]
    assert not foreign, f"{folder}: not rank files: {foreign}"
    found = [read(file) for file in files if not is_window(file)]
    return sorted(found, key=lambda file: file.rank)


def is_node(path: pathlib.Path) -> bool:
    """Returns whether this is a file of tprof-node, which has lanes of a host and its GPUs."""
    return re.search(r"\.node(\.r\d+)?\.json$", path.name) is not None


def is_window(path: pathlib.Path) -> bool:
    """Returns whether this is a window's file (TPROF_WINDOW_FILES)."""
    with path.open() as file:
        return any('"tprof_header"' in line and '"window":{' in line for _, line in zip(range(4), file))


def windows_of(path: pathlib.Path) -> dict[str, RankFile]:
    """Returns those windows' files of a rank file that are there, by name, in the order of the windows."""
    found = [read(file) for file in path.parent.glob(f"{path.stem}.*.json") if is_window(file)]
    assert all(file.header["window"]["of"] == path.name for file in found)
    found.sort(key=lambda file: file.header["window"]["number"])
    return {file.path.name: file for file in found}


def calls_of(rows: list[dict]) -> collections.Counter:
    """Returns the calls by function."""
    total = collections.Counter()
    for row in rows:
        total[row["name"]] += row["calls"]
    return total


def calls_in(traces: pathlib.Path) -> collections.Counter:
    """Returns the calls by function of all rank files of a folder, which may not be there."""
    rows = [row for path in traces.glob("*") for row in named(parsed(path), "tprof_ledger")[-1]["rows"]]
    return +calls_of(rows)


def untimed(file: RankFile) -> int:
    """Returns the number of calls that TPROF_TIMING was to time and that have no time."""
    return sum(file.footer.get("timing_lost", {}).values())
