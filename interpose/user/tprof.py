"""Lets a Python program describe its work to tprof, and read the counts: tprof.h for Python, in one file
without dependencies (CPython 3.8 or later). Copy it, or install the wheel of `make wheel`.

If libtprof.so is not preloaded nothing happens: scopes are entered and left, functions are called,
and all counts are 0.

    import tprof

    with tprof.scope("attention", categories="compute", elements=q.numel()):
        ...

    @tprof.traced                      # or @tprof.traced("name", categories=["io", "checkpoint"])
    def load(): ...

    for batch in loader:
        tprof.step()                   # begins a step, and ends the one before
        with tprof.phase("forward"): ...

    tprof.counter("queue", {"full": 3, "empty": 5})
    print(tprof.totals()["ALLGATHER"]["bytes"])
    tprof.dump_and_reset("after warm-up: ")
"""

import array
import asyncio
import collections
import contextlib
import ctypes
import enum
import functools
import gzip
import json
import logging
import math
import operator
import os
import sys
import threading
import types

__all__ = [
    "BadArgument", "GatheredTime", "Marker", "PartitionedParameterProfiler", "ProfiledTime", "Results",
    "Samples", "SimpleProfiler", "TimeManager", "TprofError", "counter", "dump_and_reset", "enabled", "end",
    "end_step", "flush", "flush_device", "instant", "load", "operators", "pause", "phase", "pop", "profiler",
    "push", "rank", "reset", "resume", "scope", "start", "step", "step_profiler", "timer", "timer_wrap",
    "totals", "traced",
]

_NOT_OPEN, _BAD_ARGUMENT, _TIMED_OUT = -1, -2, -3
_NEXT_STEP, _NO_STEP = -1, -2


class TprofError(RuntimeError):
    """An impossible call: an end without its begin, or an unknown phase."""


class BadArgument(TprofError, ValueError):
    """An invalid name or number. It is raised where the argument is given."""


class _With(ctypes.Structure):
    _fields_ = [("categories", ctypes.c_char_p), ("elements", ctypes.c_uint64), ("bytes", ctypes.c_uint64),
                ("time_ns", ctypes.c_uint64), ("error", ctypes.c_char_p)]


_text, _with, _size = ctypes.c_char_p, ctypes.POINTER(_With), ctypes.c_size_t
_int, _i64, _u64 = ctypes.c_int, ctypes.c_int64, ctypes.c_uint64

# Each function's result and arguments, in the order of tprof.h's tprof_functions_v1.
_SIGNATURES = {
    "push": (_int, _text, _with),
    "pop": (_int, _text, _with),
    "start": (_u64, _text, _with),
    "end": (_int, _u64, _with),
    "instant": (_int, _text, _with),
    "counter": (_int, _text, ctypes.POINTER(_text), ctypes.POINTER(ctypes.c_double), _size, _u64),
    "step": (_int, _i64),
    "phase": (_int, _text),
    "reset": (_int,),
    "flush": (_int, ctypes.c_uint32),
    "enabled": (_int,),
    "rank": (_int,),
    "totals": (_size, _text, _size),
    "totals_and_reset": (_size, _text, _size),
    "pop_timed": (_i64, _text, _with),
    "end_timed": (_i64, _u64, _with),
    "pause": (_int, _int),
    "push_on": (_int, _text, _with, ctypes.c_void_p),
    "start_on": (_u64, _text, _with, ctypes.c_void_p),
    "times_on_device": (_int,),
    "flush_device": (_int, ctypes.c_uint32),
}


class _Functions(ctypes.Structure):
    # A PYFUNCTYPE keeps the interpreter's lock: it returns at once, and no other thread may come in between. Only
    # flush() and flush_device() may wait.
    _fields_ = [("size", _size)] + [
        (name, (ctypes.CFUNCTYPE if name.startswith("flush") else ctypes.PYFUNCTYPE)(*types_))
        for name, types_ in _SIGNATURES.items()
    ]


def _find():
    try:
        found = _Functions.in_dll(ctypes.CDLL(None), "tprof_functions_v1")
    except (ValueError, OSError, TypeError):  # not preloaded, or a system without dlopen(NULL)
        return None
    return found if found.size >= ctypes.sizeof(_Functions) else None


_found = _find()
# It is None too if tracing is off (TPROF_DISABLE): then nothing may cost anything.
_library = _found if _found is not None and _found.enabled() else None


def _checked(result, what):
    if result == _NOT_OPEN:
        raise TprofError(f"{what}: no such scope is open")
    if result == _BAD_ARGUMENT:
        raise TprofError(f"{what}: see tprof.h for what it takes")


@functools.lru_cache(maxsize=4096)
def _encoded(name):
    return isinstance(name, str) and "\0" not in name and name.encode(errors="replace")


def _name(name):
    try:
        text = _encoded(name)
    except TypeError:  # it has no hash
        text = None
    if not text:
        raise BadArgument(f"expected a name, a text that is not empty, got {name!r}")
    return text


_MOST = (1 << 64) - 1


def _amount(value, what):
    try:
        number = 0 if value is None else operator.index(value)  # takes NumPy's and PyTorch's too
    except TypeError:
        number = -1
    if not 0 <= number <= _MOST:
        raise BadArgument(f"expected a whole number from 0 for {what}, got {value!r}")
    return number


def _label(value, what):
    if not isinstance(value, str) or "\0" in value:
        raise BadArgument(f"expected a text for {what}, got {value!r}")
    return value.encode(errors="replace")


def _categories(categories):
    if categories is None or isinstance(categories, str):
        return categories and _label(categories, "categories")
    return _label(",".join(map(str, categories)), "categories")


def _more(categories=None, elements=0, nbytes=0, time_ns=0, error=None):
    """Returns the checked attributes. None: there are none."""
    if categories is None and not elements and not nbytes and not time_ns and error is None:
        return None
    return _With(_categories(categories), _amount(elements, "elements"), _amount(nbytes, "bytes"),
                 _amount(time_ns, "time_ns"), error and _label(str(error), "error"))


def _stream():
    """Returns PyTorch's current stream, if scopes are timed on the device. None: they are not, or the stream is unknown."""
    torch = sys.modules.get("torch") if _library.times_on_device() else None
    if torch is None or not torch.cuda.is_initialized():
        return None
    return torch._C._cuda_getCurrentRawStream(torch._C._cuda_getDevice())


def _push(text, more):
    stream = _stream()
    return _library.push(text, more) if stream is None else _library.push_on(text, more, stream)


def _start(text, more):
    stream = _stream()
    return _library.start(text, more) if stream is None else _library.start_on(text, more, stream)


_listening = []  # objects whose `heard(name, ns)` is called for every scope that ends
_open = threading.local()  # .names: this thread's open scopes of push()
_started = {}  # names of the open scopes of start(), by number


def _tell(name, ns):
    for listener in tuple(_listening):
        listener.heard(name, ns)


def push(name, categories=None, elements=0, bytes=0, time_ns=0):
    """Begins a scope of this thread. `categories` is a text, or several. `time_ns` is its time.time_ns();
    0: now."""
    text, more = _name(name), _more(categories, elements, bytes, time_ns)
    if _library is None:
        return
    _checked(_push(text, more), "push")
    _open.__dict__.setdefault("names", []).append(name)


def pop(name=None, elements=0, bytes=0, time_ns=0, error=None):
    """Ends this thread's innermost scope, or its innermost of that name. TprofError: there is none.
    `error` is the type of the exception that left it. Returns its duration in nanoseconds."""
    text, more = None if name is None else _name(name), _more(None, elements, bytes, time_ns, error)
    if _library is None:
        return 0
    ns = _library.pop_timed(text, more)
    _checked(ns, f"pop {name or ''}")
    names = _open.__dict__.get("names", [])
    for i in range(len(names) - 1, -1, -1):
        if name is None or names[i] == name:
            _tell(names.pop(i), ns)
            break
    return ns


def start(name, categories=None, elements=0, bytes=0, time_ns=0):
    """Begins a scope that any thread or task may end, by the returned number (0: it is not recorded)."""
    text, more = _name(name), _more(categories, elements, bytes, time_ns)
    if _library is None:
        return 0
    number = _start(text, more)
    if number:
        _started[number] = name
    return number


def end(number, elements=0, bytes=0, time_ns=0, error=None):
    """Ends a scope of start(). TprofError: it has already ended."""
    number, more = _amount(number, "the number of a scope"), _more(None, elements, bytes, time_ns, error)
    if _library is None:
        return
    ns = _library.end_timed(number, more)
    _checked(ns, "end")
    name = _started.pop(number, None)
    if name is not None:
        _tell(name, ns)


class scope:
    """A scope as a context manager. It also works in coroutines (`async with`): then other tasks may run in
    between. Values that are known only at the end are set on it: `with scope("x") as s: s.elements = n`.
    BadArgument, a ValueError, comes from where the argument is given, never from the block's end."""

    __slots__ = ("name", "_text", "_begins", "_elements", "_bytes", "_number")

    def __init__(self, name, categories=None, elements=None, bytes=None):
        self.name, self._text = name, _name(name)
        self._begins = None if categories is None else _more(categories)
        self._elements = 0 if elements is None else _amount(elements, "elements")
        self._bytes = 0 if bytes is None else _amount(bytes, "bytes")

    elements = property(
        lambda self: self._elements, lambda self, value: setattr(self, "_elements", _amount(value, "elements")))  # fmt: skip
    bytes = property(
        lambda self: self._bytes, lambda self, value: setattr(self, "_bytes", _amount(value, "bytes")))  # fmt: skip

    def _ends(self, kind):
        if kind is None and not self._elements and not self._bytes:
            return None
        return _With(None, self._elements, self._bytes, 0, kind and kind.__qualname__.encode(errors="replace"))

    def _heard(self, ns):
        _tell(self.name, ns)

    def _ended(self, ns):
        _checked(ns, self.name)
        self._heard(ns)

    def __enter__(self):
        if _library is not None:
            _push(self._text, self._begins)
        return self

    def __exit__(self, kind, error, where):
        if _library is not None:
            self._ended(_library.pop_timed(self._text, self._ends(kind)))

    async def __aenter__(self):
        self._number = 0 if _library is None else _start(self._text, self._begins)
        return self

    async def __aexit__(self, kind, error, where):
        if _library is not None:
            self._ended(_library.end_timed(self._number, self._ends(kind)))


def traced(name=None, categories=None):
    """A decorator that makes each call of the function a scope, by default with its qualified name.
    For coroutine functions each await is a scope."""

    def decorate(function):
        called = name if isinstance(name, str) else f"{function.__module__}.{function.__qualname__}"

        if asyncio.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*args, **more):
                async with scope(called, categories):
                    return await function(*args, **more)

            return awaited

        @functools.wraps(function)
        def wrapped(*args, **more):
            with scope(called, categories):
                return function(*args, **more)

        return wrapped

    return decorate(name) if callable(name) else decorate


def instant(name, categories=None, time_ns=0):
    """Records a moment."""
    text, more = _name(name), _more(categories, 0, 0, time_ns)
    if _library is not None:
        _checked(_library.instant(text, more), "instant")


def counter(name, values, time_ns=0):
    """Sets up to 8 values of a counter: a dict of numbers, or one number."""
    text = _name(name)
    if _library is None:
        return
    if not isinstance(values, dict):
        values = {name: values}
    keys = (ctypes.c_char_p * len(values))(*[str(k).encode(errors="replace") for k in values])
    numbers = (ctypes.c_double * len(values))(*[float(v) for v in values.values()])
    _checked(_library.counter(text, keys, numbers, len(values), time_ns), "counter")


def _until(leave):
    """Returns a context manager that calls `leave` at the end of its block."""
    ended = contextlib.ExitStack()
    ended.callback(leave)
    return ended


def step(number=None):
    """Begins a training step, and ends the previous one: `number`, or the last number + 1 (the
    first is 1). As a context manager it ends with its block."""
    if _library is not None:
        _checked(_library.step(_NEXT_STEP if number is None else _amount(number, "a step")), "step")
    return _until(end_step)


def end_step():
    """Ends the step, and begins none."""
    if _library is not None:
        _library.step(_NO_STEP)


def phase(name):
    """Sets this thread's phase, until it is set again: "load", "forward", "backward", "optimizer", or
    None. As a context manager it ends with its block."""
    text = None if name is None else _name(name)
    if _library is not None:
        _checked(_library.phase(text), f"phase {name}")
    return _until(lambda: phase(None))


def reset():
    """Makes totals() count from here. The trace still counts the whole run."""
    if _library is not None:
        _library.reset()


def pause():
    """From here on nothing counts in totals(), so that it covers only parts of the run. As a context
    manager it ends with its block. The trace still counts everything."""
    if _library is not None:
        _library.pause(1)
    return _until(resume)


def resume():
    """Makes totals() count again."""
    if _library is not None:
        _library.pause(0)


def flush(timeout=1.0):
    """Waits until everything before is in the rank file. Returns False after `timeout` seconds."""
    return _library is None or _library.flush(int(timeout * 1000)) != _TIMED_OUT


def flush_device(timeout=1.0):
    """Waits until totals() includes the device times of all scopes ended before. Returns False after `timeout`
    seconds."""
    return _library is None or _library.flush_device(int(timeout * 1000)) != _TIMED_OUT


def enabled():
    """True if scopes and counters are recorded."""
    return _library is not None and bool(_library.enabled())


def rank():
    """Returns the process's rank, from the launcher or its largest communicator; None: not known."""
    known = -1 if _found is None else _found.rank()
    return None if known < 0 else known


def _asked(ask):
    size = 1 << 16
    while True:
        text = ctypes.create_string_buffer(size)
        needed = ask(text, size)
        if needed <= size:
            return json.loads(text.value.decode(errors="replace") or "{}")
        size = needed + 4096


_BUCKETS = ("ALLGATHER", "RESHARDING", "H2D", "D2H", "ALLREDUCE", "BROADCAST", "REDUCE", "ALLTOALL", "P2P",
            "OTHER_COLL", "EP", "D2D", "H2H", "MANAGED", "ALL")  # fmt: skip
_COUNTS = ("calls", "count", "elements", "bytes", "host_ns", "device_ns", "device_timed", "failed")
_SUMS = ("count", "total_ns", "elements", "bytes", "errors", "device_ns", "device_timed")


def _totals(ask):
    told = _asked(ask)
    scopes = {}
    for more in told.get("scopes", []):  # by name and category
        sums = scopes.setdefault(more["scope"], dict.fromkeys(_SUMS, 0))
        for key in _SUMS:
            sums[key] += more[key]
    return {**told.get("buckets", {}), "scopes": scopes}


def totals():
    """Returns this process's exact counts since reset(), from the library's counts and clock, by
    bucket (calls, count, elements, bytes, host_ns, device_ns, device_timed, failed; "ALL" is all of them).
    In "scopes" they are by scope name (count, total_ns, elements, bytes, errors, device_timed:
    how many were timed on the device, and device_ns of those). Names stay with a count of 0 after a reset().
    All buckets are there, even without the library; the counts are then 0."""
    none = {name: dict.fromkeys(_COUNTS, 0) for name in _BUCKETS}
    return {**none, **({"scopes": {}} if _library is None else _totals(_library.totals))}


def dump_and_reset(message="", logger=None):
    """Logs totals() without buckets that have no calls, as one line of `logger` (by default this module's), at level
    INFO, and resets at that moment."""
    if _library is not None:
        told = _totals(_library.totals_and_reset)
        (logger or logging.getLogger(__name__)).info("%s%s", message, json.dumps(told))


# Results of a job so far, with every sample; and what takes the call sites of other profilers.


class Samples:
    """Durations of one name, in seconds, each with its rank, as in tprofiler's GatheredTime. `[5:]` leaves
    out the first five, get_rank(0) all ranks but one. If more were counted than are here (load()), count(),
    sum(), mean() and histogram() are of all of them and `complete` is False."""

    def __init__(self, ns=(), ranks=(), counted=None):
        self.ns, self.ranks = array.array("Q", ns), array.array("q", ranks)
        self._counted = counted  # (count, total_ns, {bin's shortest: how many}), None: as many as are here

    @property
    def complete(self):
        return self._counted is None

    def __len__(self):
        return len(self.ns)

    def __iter__(self):
        return (ns / 1e9 for ns in self.ns)

    def __bool__(self):
        return self.count() > 0

    def __getitem__(self, which):
        if isinstance(which, slice):
            return Samples(self.ns[which], self.ranks[which])
        if hasattr(which, "__index__"):
            return self.ns[operator.index(which)] / 1e9
        which = list(which)
        chosen = [i for i, yes in enumerate(which) if yes] if all(isinstance(i, bool) for i in which) else which
        return Samples([self.ns[i] for i in chosen], [self.ranks[i] for i in chosen])

    def __eq__(self, other):
        return isinstance(other, Samples) and (self.ns, self.ranks, self._counted) == (other.ns, other.ranks, other._counted)

    def __repr__(self):
        return f"<{self.count()} samples of {self.rank_count()} ranks, mean {self.mean():.3g} s>"

    def get_rank(self, *ranks):
        return self[[i for i, rank in enumerate(self.ranks) if rank in ranks]]

    def count(self):
        return len(self.ns) if self.complete else self._counted[0]

    def sum(self):
        return (sum(self.ns) if self.complete else self._counted[1]) / 1e9

    def mean(self):
        return self.sum() / self.count() if self.count() else math.nan

    def std(self):
        """Returns the deviation of all of them, not of a sample. NaN: not all are here."""
        if not self.complete or not self.ns:
            return math.nan
        mean = sum(self.ns) / len(self.ns)
        return math.sqrt(math.fsum((ns - mean) ** 2 for ns in self.ns) / len(self.ns)) / 1e9

    def rank_count(self):
        return len(set(self.ranks))

    def histogram(self, bins=20):
        """Returns (numbers, edges in seconds). A bin is from its edge to below the next; the last one includes
        its end. If not all samples are here, the bins are the trace's, a quarter of an octave each."""
        if not self.complete:
            froms = sorted(self._counted[2])
            return [self._counted[2][ns] for ns in froms], [ns / 1e9 for ns in froms] + [_next_bin(froms[-1]) / 1e9]
        if not self.ns:
            return [], []
        low, high = min(self.ns), max(self.ns)
        numbers = [0] * bins
        for ns in self.ns:
            numbers[min(bins - 1, (ns - low) * bins // max(1, high - low))] += 1
        return numbers, [(low + (high - low) * i / bins) / 1e9 for i in range(bins + 1)]

    def hist(self, bins=20, separate_ranks=False, alpha=0.7, title=None, ax=None, **more):
        """Draws it by matplotlib, into `ax` or the current axes."""
        from matplotlib import pyplot  # only here

        ax = ax or pyplot.gca()
        for rank in sorted(set(self.ranks)) if separate_ranks else [None]:
            of = self if rank is None else self.get_rank(rank)
            named = f"n={of.count()}, mean={of.mean():.3g} s, std={of.std():.3g} s"
            ax.hist(list(of), bins=bins, alpha=alpha, label=named if rank is None else f"rank {rank} ({named})", **more)
        ax.set(title=title or "Time Distribution", xlabel="Time (seconds)", ylabel="Frequency")
        ax.legend()
        return ax


def _next_bin(ns):
    return ns + 1 if ns < 4 else ns + (1 << (ns.bit_length() - 3))


class Results(dict):
    """Samples by name, as in tprofiler's ProfiledTime."""

    def __repr__(self):
        return f"Results({super().__repr__()})"

    def _add(self, name, ns, ranks):
        of = self.setdefault(name, Samples())
        of.ns.extend(ns)
        of.ranks.extend(ranks)

    @staticmethod
    def load(path):
        """Does what this module's load() does."""
        return load(path)

    def save(self, file):
        """Writes JSON, which load() reads."""
        saved = {name: [list(s.ns), list(s.ranks), s._counted and [*s._counted[:2], sorted(s._counted[2].items())]]
                 for name, s in self.items()}
        with open(file, "w") as out:
            json.dump({"schema": "tprof-results/1", "samples": saved}, out)


ProfiledTime, GatheredTime = Results, Samples  # as tprofiler calls them


def load(path):
    """Loads the results of a job from the folder of its traces, with all ranks. If there are several runs, it
    takes the last to start; a killed one needs `tprof recover` first. It also loads what Results.save() wrote."""
    if not os.path.isdir(path):
        with open(path) as file:
            saved = json.load(file)
        return Results({name: Samples(ns, ranks, counted and (*counted[:2], dict(map(tuple, counted[2]))))
                        for name, (ns, ranks, counted) in saved["samples"].items()})
    files = [os.path.join(path, name) for name in sorted(os.listdir(path)) if name.endswith(".json") and name[0] != "."]
    told = [found for found in map(_told_by, files) if found is not None]
    if not told:
        raise FileNotFoundError(f"{path}: expected the folder of a job's traces, rank files of tprof")
    last = max(told, key=lambda t: t.header["base_time_ns"]).header.get("run_id")
    told = [t for t in told if t.header.get("run_id") == last]
    ranks = {t.header["start_ns"]: t.rank for t in told if t.rank is not None}  # a window's file has no identity
    results, counted = Results(), {}
    for t in told:
        rank = ranks.get(t.header["start_ns"], -1)
        for name, ns in t.samples:
            results._add(name, [ns], [rank])
        for scope in t.scopes:
            results._add(scope["scope"], [], [])
            sums = counted.setdefault(scope["scope"], [0, 0, {}])
            sums[0] += scope["count"]
            sums[1] += scope["total_ns"]
            for begin, n in scope["bins"]:
                sums[2][begin] = sums[2].get(begin, 0) + n
    for name, sums in counted.items():
        if sums[0] > len(results[name]):
            results[name]._counted = tuple(sums)
    return results


def _told_by(file):
    """Returns what one rank file has. None: it is no rank file."""
    told, began = types.SimpleNamespace(header=None, rank=None, samples=[], scopes=[]), {}
    with open(file, errors="replace") as lines:
        for line in lines:
            range_ = line.startswith('{"cat":"NVTX"') and '"domain":"tprof"' in line
            if not range_ and not line.startswith(('{"name":"tprof_header"', '{"name":"tprof_ledger"', '{"name":"tprof_identity"')):
                continue
            try:
                event = json.loads(line.rstrip().rstrip(","))
            except ValueError:
                break  # cut
            name, args = event["name"], event["args"]
            if not range_:
                if name == "tprof_header":
                    told.header, told.rank = args, args.get("rank")
                elif name == "tprof_identity":
                    told.rank = args["rank"]
                else:
                    told.scopes = args.get("scopes", [])
            elif event["ph"] == "X":
                told.samples.append((name, round(event["dur"] * 1000)))
            elif event["ph"] == "b":
                began[event["id2"]["local"]] = event["ts"]
            elif event["ph"] == "e" and not (name.startswith("step ") and name[5:].isdigit()):
                start_us = began.pop(event["id2"]["local"], None)
                if start_us is not None:
                    told.samples.append((name, round(event["ts"] * 1000) - round(start_us * 1000)))
    return told if told.header is not None else None


class TimeManager:
    """Takes the place of tprofiler's: every scope that ends while it is enabled leaves a sample with it."""

    def __init__(self):
        self.records = {}  # by name: nanoseconds, on the library's clock

    def heard(self, name, ns):
        self.records.setdefault(str(name.value if isinstance(name, enum.Enum) else name), array.array("Q")).append(ns)

    def timer(self, name):
        return _Only(self, name)

    @contextlib.contextmanager
    def enable_timer(self):
        _listening.append(self)
        try:
            yield self
        finally:
            _listening.remove(self)

    def clear(self):
        self.records.clear()

    def results(self):
        """Returns the results of this process."""
        own = rank() or 0
        return Results({name: Samples(ns, [own] * len(ns)) for name, ns in self.records.items()})

    def gather(self, dst=None):
        """Returns the results of all ranks, by torch.distributed if it is initialised; None on others than `dst`."""
        torch = sys.modules.get("torch")
        dist = torch.distributed if torch is not None and torch.distributed.is_available() else None
        if dist is None or not dist.is_initialized():
            return self.results()
        all_ranks = [None] * dist.get_world_size()
        dist.all_gather_object(all_ranks, {name: list(ns) for name, ns in self.records.items()})
        if dst is not None and dst != dist.get_rank():
            return None
        results = Results()
        for number, records in enumerate(all_ranks):
            for name, ns in records.items():
                results._add(name, ns, [number] * len(ns))
        return results


class _Only(scope):
    """A scope that one listener hears of, besides those that hear of all."""

    __slots__ = ("_listener",)

    def __init__(self, listener, name):
        super().__init__(name)
        self._listener = listener

    def _heard(self, ns):
        super()._heard(ns)
        if self._listener not in _listening:
            self._listener.heard(self.name, ns)


timer = scope


def timer_wrap(name=None):
    """tprofiler's decorator: each call is a scope of the function's own name."""
    return lambda function: traced(name or function.__name__)(function)


class SimpleProfiler:
    """Takes the place of FSDP's (torch.distributed.fsdp._debug_utils) at its call sites: seconds by type, and
    a scope in the trace for each."""

    Type = enum.Enum("Type", {
        "ALL": "all", "ALLGATHER": "all_gather", "ALLGATHER_OBJ": "all_gather_object", "RESHARDING": "resharding",
        "H2D": "H2D", "D2H": "D2H",
    }, type=str)  # fmt: skip
    results = collections.defaultdict(float)
    profiling = set()

    @classmethod
    def reset(cls):
        cls.results.clear()
        cls.profiling.clear()

    @classmethod
    @contextlib.contextmanager
    def profile(cls, profile_type):
        name = getattr(profile_type, "value", profile_type)
        if name in cls.profiling:
            raise AssertionError(f"{name} is already being profiled")
        cls.profiling.add(name)
        try:
            with _Only(cls, name):
                yield
        finally:
            cls.profiling.discard(name)

    @classmethod
    def heard(cls, name, ns):
        cls.results[name] = cls.results.get(name, 0.0) + ns / 1e9

    @classmethod
    def dump_and_reset(cls, msg):
        """Logs one line on rank 0, at level INFO. Every rank begins anew."""
        if cls.results and not rank():
            logging.getLogger(__name__).info("%s %s", msg, json.dumps(cls.results))
        cls.reset()


class PartitionedParameterProfiler:
    """Takes the place of DeepSpeed's (deepspeed.runtime.zero.partitioned_param_profiler) at its call sites. It
    tells how often, how many elements and how long, by event, and has a scope in the trace for each. `timers`
    are not needed: device times come with TPROF_TIMING=events. On the rank that logs, log_events() and reset_events()
    then wait until the device has come to the end of the events, for 10 s at most. A wait for parameters is a scope
    of the category "demanded" if some of them were gathered only when the module needed them, else "prefetched". Its
    time on the device is how late they came."""

    class EventCounter:
        def __init__(self, name):
            self.name = name
            self.reset()

        def reset(self):
            self.count = self.num_elem = self.total_ns = 0

    def __init__(self, timers=None):
        self.event_counters = {}
        self._device_before = {}
        self._demanded = False  # since the last wait

    def start_event(self, name):
        how = None
        if name.endswith("_fetch_submit"):
            self._demanded = True
        elif name.endswith("_fetch_wait"):
            how, self._demanded = "demanded" if self._demanded else "prefetched", False
        push(name, how)
        if _library is not None:
            self.event_counters.setdefault(name, self.EventCounter(name))

    def stop_event(self, name, num_elem):
        ns = pop(name, elements=num_elem)
        if _library is not None:
            counter_ = self.event_counters.setdefault(name, self.EventCounter(name))
            counter_.count += 1
            counter_.num_elem += operator.index(num_elem)
            counter_.total_ns += ns

    def count_event(self, name, num_elem):
        self.start_event(name)
        self.stop_event(name, num_elem)

    def reset_events(self):
        """Sets all counts to 0. The names stay."""
        for counter_ in self.event_counters.values():
            counter_.reset()
        self._device_before = self._device()

    def _device(self):
        """Returns (nanoseconds, how many were timed) by event, since the trace began."""
        if not self._logs() or not _library.times_on_device():
            return {}
        flush_device(10)
        scopes = totals()["scopes"]
        return {name: (scopes[name]["device_ns"], scopes[name]["device_timed"]) for name in self.event_counters if name in scopes}

    def _logs(self):
        return self.event_counters and not rank()

    def log_events(self):
        """Logs on rank 0, at level INFO."""
        if not self._logs():
            return
        log = logging.getLogger(__name__).info
        for c in self.event_counters.values():
            log("%s: count = %d, numel = %d", c.name, c.count, c.num_elem)
        log("time (ms)%s", "".join(f" | {c.name}: {c.total_ns / 1e6:.2f}" for c in self.event_counters.values()))
        device = ""
        for name, now in self._device().items():
            ns, timed = (n - min(n, before) for n, before in zip(now, self._device_before.get(name, (0, 0))))
            count = self.event_counters[name].count
            device += f" | {name}: {ns / 1e6:.2f}" + ("" if timed == count else f" ({timed} of {count} timed)")
        if device:
            log("device time (ms)%s", device)


class Marker:
    """Takes the place of Composer's: profiler.marker(name, categories=...). Which steps have lines is not said by
    `actions` but by TPROF_SCHEDULE."""

    def __init__(self, name, categories=(), *, actions=None, record_instant_on_start=False, record_instant_on_finish=False):
        _name(name)
        self.name, self.categories = name, categories or None
        self._at_start, self._at_finish = record_instant_on_start, record_instant_on_finish

    def start(self):
        if self._at_start:
            self.instant()
        push(self.name, self.categories)

    def finish(self, error=None):
        pop(self.name, error=error)
        if self._at_finish:
            self.instant()

    def instant(self):
        instant(self.name, self.categories)

    def counter(self, values):
        counter(self.name, values)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, error, where):
        self.finish(error=kind and kind.__qualname__)
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def marked(*args, **more):
            with self:
                return function(*args, **more)

        return marked


def profiler(train=None, *, enabled=True, **schedule):
    """Decorates a training function that calls step_profiler() after each step: what comes after the last is a
    step of its own. TPROF_SCHEDULE decides which steps have lines. Where it is not set, skip_first, wait, warmup,
    active and repeat are it, if no call or scope came before."""
    unknown = set(schedule) - {"skip_first", "skip_first_wait", "wait", "warmup", "active", "repeat"}
    if unknown:
        raise TypeError(f"profiler: expected the words of a schedule, got {', '.join(sorted(unknown))}")
    if not enabled:
        return train or (lambda function: function)
    if schedule and _library is not None:
        os.environ.setdefault("TPROF_SCHEDULE", ",".join(f"{word}={steps}" for word, steps in schedule.items()))
    if train is None:
        return profiler

    @functools.wraps(train)
    def wrapped(*args, **more):
        step()
        try:
            return train(*args, **more)
        finally:
            end_step()
            flush()

    return wrapped


step_profiler = step


# Operators as PyTorch's profiler saw them; tprof sees none.


def _whole(text):
    return [int(n) for n in text.strip("[]").split(",") if n.strip()]


def _flops(name, dims, concrete):
    """Returns FLOPs as torch.profiler counts them (with_flops): for matrix products, conv2d, add, mul; else None."""
    try:
        if name in ("aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm"):
            left, right = dims[:2] if name[6] in "mb" and "add" not in name else dims[1:3]
            return 2 * math.prod(left) * right[-1]
        if name in ("aten::add", "aten::mul"):
            return math.prod(dims[0])
        if name == "aten::conv2d":
            batch, channels, *size = dims[0]
            out_channels, _, *kernel = dims[1]
            stride, padding, dilation = map(_whole, concrete[3:6])
            out = [
                (size[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2)
            ]
            return 2 * batch * math.prod(out) * math.prod(kernel) * channels * out_channels // int(concrete[6])
    except (IndexError, ValueError, TypeError):  # without record_shapes; padding="same"
        return None
    return None


def operators(file):
    """Returns the operators of a trace of PyTorch's profiler (a file, .gz too, or what `tprof merge --with` made
    of it) by name and shapes, the longest first. Each is a dict of name, shapes, calls, total_us (with nested
    operators) and, for those that torch counts, flops. Shapes are there if the profiler had record_shapes."""
    with (gzip.open if str(file).endswith(".gz") else open)(file, "rt") as text:
        trace = json.load(text)
    rows = {}
    for event in trace["traceEvents"] if isinstance(trace, dict) else trace:
        if event.get("ph") != "X" or event.get("cat") not in ("cpu_op", "OTHER,cpu_op"):
            continue
        args = event.get("args", {})
        dims = args.get("Input Dims", [])
        row = rows.setdefault((event["name"], json.dumps(dims)), {
            "name": event["name"], "shapes": [d for d in dims if d], "calls": 0, "total_us": 0.0, "flops": None,
        })
        row["calls"] += 1
        row["total_us"] += event.get("dur", 0)
        flops = _flops(event["name"], dims, args.get("Concrete Inputs", []))
        if flops is not None:
            row["flops"] = (row["flops"] or 0) + flops
    return sorted(rows.values(), key=lambda r: -r["total_us"])


def _print_operators(file, most=40):
    rows = operators(file)
    table = [("operator", "shapes", "calls", "total ms", "FLOPs")]
    for r in rows[:most]:
        shapes = " ".join("x".join(map(str, shape)) for shape in r["shapes"]) or "-"
        table.append((r["name"], shapes, str(r["calls"]), f"{r['total_us'] / 1e3:.3f}", "-" if r["flops"] is None else f"{r['flops']:,}"))
    widths = [max(len(row[i]) for row in table) for i in range(5)]
    for row in table:
        print(*(cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))))
    if len(rows) > most:
        print(f"and {len(rows) - most} more (all of them: tprof.operators)")
    counted = [r["flops"] for r in rows if r["flops"] is not None]
    print(f"{sum(counted):,} FLOPs by torch.profiler's formulas" if counted else
          "no FLOPs: they follow from shapes, which the profiler tells with record_shapes=True")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "operators":
        sys.exit("usage: python3 -m tprof operators TRACE: a table of what PyTorch's profiler saw")
    _print_operators(sys.argv[2])
