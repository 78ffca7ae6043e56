"""Compares device and exposed time, as `summary` prints them, with what they are by definition
(device_truth.py), from the stand-in's schedule."""

import collections
import dataclasses
import itertools

from lib import device_truth, device_work
from lib.launch import without_agent
from lib.rankfile import untimed
from lib.timed import traced
from lib.tool import summary_of

# A kernel takes a microsecond for each block, a call or copy one for each byte.
DEVICE = {"STANDIN_BLOCK_US": "1", "STANDIN_GBPS": "0.001"}
TIMINGS = ("events", "events:16")
# How far a printed time may be from the truth: a share of the device time, and ns for each call.
SHARE, EACH_NS = 0.05, 200_000


@dataclasses.dataclass
class Figures:
    """Figures of all calls of one function; for copies, of one direction."""

    calls: int = 0
    timed: int = 0  # calls with a device time
    device: int = 0  # ns
    known: int = 0  # calls with an exposed time
    known_device: int = 0  # their device time
    exposed: int = 0


def printed(folder):
    """Returns name -> what `summary` says."""
    found = collections.defaultdict(Figures)
    for op in summary_of(folder)["ops"]:
        figures = found[key(op["name"], op["bucket"])]
        figures.calls += op["calls"]
        figures.timed += op["device_timed"]
        figures.device += op["device_ns"] or 0
        figures.known += op["exposure_known"]
        figures.known_device += op["exposure_known_ns"] or 0
        figures.exposed += op["exposed_ns"] or 0
    return found


def key(name, way):
    return f"{name} {way}" if way in ("H2D", "D2H", "D2D", "H2H", "MANAGED") else name


def sampled(files):
    return ":" in files[0].header["config"].get("TPROF_TIMING", "")


def name_of(call):
    return key("+".join(call.names), call.work.way)


def truths(folder, files):
    """Returns the calls of each rank."""
    return [device_truth.calls_of(device_truth.ran_of(folder, file)) for file in files]


def by_name(calls):
    found = collections.defaultdict(list)
    for call in itertools.chain(*calls):
        found[name_of(call)].append(call)
    return found


def how_many(calls):
    return sum(call.work.calls for call in calls)


def timed_ones(calls, files):
    """Returns the calls that have a device time: for each device line, the call that is nearest in time."""
    chosen = collections.defaultdict(list)
    for file, of_rank in zip(files, calls, strict=True):
        base = file.header["monotonic_ns"]
        rest = list(of_rank)
        for line in file.lines:
            if line.get("cat") != "DEVICE" or line["name"] in ("cudaGraphLaunch", "ncclGroupEnd"):
                continue
            began = base + line["ts"] * 1000
            ended = began + line["dur"] * 1000
            same = (call for call in rest if line["name"] in call.names)
            nearest = min(same, key=lambda call: abs(call.work.began - began) + abs(call.work.ended - ended))
            rest.remove(nearest)
            chosen[name_of(nearest)].append(nearest)
    return chosen


def wrong_groups(file, calls):
    """Returns what is wrong of the times that calls of several functions or sizes have together."""
    base = file.header["monotonic_ns"]
    rest = [call for call in calls if call.work.calls > 1]
    wrong = []
    for line in file.lines:
        if line.get("cat") != "DEVICE" or line["name"] != "ncclGroupEnd":
            continue
        began = base + line["ts"] * 1000
        ended = began + line["dur"] * 1000
        alike = [call for call in rest if call.work.calls == line["args"]["calls"]]
        if not alike:
            wrong.append(f"a group of {line['args']['calls']} calls ran nowhere")
            continue
        nearest = min(alike, key=lambda call: abs(call.work.began - began) + abs(call.work.ended - ended))
        rest.remove(nearest)
        margin = SHARE * nearest.took + EACH_NS + nearest.host_ns
        if abs(ended - began - nearest.took) > margin or abs(ended - nearest.work.ended) > margin:
            wrong.append(f"a group took {ms(nearest.took)} until {nearest.work.ended}, printed {ms(ended - began)} until {ended}")
    left = [call for call in rest if len(call.names) > 1]
    if left and not sampled([file]) and set(file.footer["timing_lost"]) == {"mixed"}:
        wrong.append(f"{len(left)} groups have no time")
    return wrong


def differences(run, folder, may_be_unknown=()):
    """Returns what is printed wrong, in words. Names without a known time must be in `may_be_unknown`."""
    files = run.ranks()
    told, wrong = printed(run.traces), []
    if not sampled(files):
        lost = sum(untimed(file) for file in files)
        direct = [row for file in files for row in file.ledger_rows() if row["mode"] == "direct"]
        without = sum(row["calls"] - row["device_timed"] for row in direct)
        if lost != without:
            wrong.append(f"{without} calls without device time, {lost} with a reason")
    of_ranks = truths(folder, files)
    for file, of_rank in zip(files, of_ranks, strict=True):
        wrong += wrong_groups(file, of_rank)
    timed = timed_ones(of_ranks, files)
    without_pair = few_without_pair(files, of_ranks)
    for name, calls in by_name(of_ranks).items():
        figures = told[name]
        if "+" in name:  # a group has one time, which is none of its functions'
            continue
        if figures.calls != how_many(calls):
            wrong.append(f"{name}: {how_many(calls)} calls, printed {figures.calls}")
            continue
        if figures.timed < figures.calls:
            calls = timed[name]
        if not calls:
            if name not in may_be_unknown:
                wrong.append(f"{name}: no device time")
            continue
        truth = sum(call.took for call in calls)
        # The thread had no core between an event and the call, which is no fault of the measurement.
        away = sum(call.host_ns for call in calls)
        margin = SHARE * truth + EACH_NS * len(calls)
        if not truth - margin <= figures.device <= truth + margin + away:
            wrong.append(f"{name}: device time {ms(truth)} of {len(calls)}, printed {ms(figures.device)} of {figures.timed}")
        calls = [call for call in calls if not call.computes]
        if not calls:
            continue
        truth = sum(call.took for call in calls)
        # Only the calls whose exposed time is known count; they are most of them.
        known = min(len(calls), figures.known * len(calls) // how_many(calls))  # pieces of work
        if 2 * known < len(calls) - without_pair:
            if name not in may_be_unknown:
                wrong.append(f"{name}: exposed time of {known} of {len(calls)} known")
            if known == 0:
                continue
        by_exposed = sorted(call.exposed for call in calls)
        least, most = sum(by_exposed[:known]), sum(by_exposed[len(calls) - known :])
        margin = SHARE * truth * known / len(calls) + EACH_NS * known
        if not least - margin <= figures.exposed <= most + margin + away:
            wrong.append(
                f"{name}: exposed {ms(sum(by_exposed))} = {share(sum(by_exposed), truth)} of {len(calls)},"
                f" printed {ms(figures.exposed)} = {share(figures.exposed, figures.known_device)} of {figures.known}"
            )
    return wrong


def few_without_pair(files, of_ranks):
    """Returns how many calls have no exposed time because the thread that makes events had no core in time. If
    these are a few of all calls, any function that is called once may be among them; otherwise returns 0."""
    lost = sum(file.footer.get("exposure_lost", {}).get("no_pair", 0) for file in files)
    return lost if 4 * lost <= sum(map(how_many, of_ranks)) else 0


def ms(ns):
    return f"{ns / 1e6:.1f} ms"


def share(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "-"


def trained(folder, script, timing, ranks=2, arguments=(), **device):
    """Runs unmodified PyTorch, whose copies, calls and kernels take as long as `device` says."""
    return traced(without_agent(script, ranks, arguments), folder, timing, **device)


def play(folder, shape, ending, timing="events", steps=20, code=0, **settings):
    """Runs a shape of training of device_work.py."""
    return traced(device_work.command(shape, ending, steps), folder, timing, code, **DEVICE, **settings)
