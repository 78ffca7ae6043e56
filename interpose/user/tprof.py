"""What a Python program may tell tprof, and ask it: tprof.h for Python, in one file without
dependencies (CPython 3.8 or later). Copy it, or install the wheel of `make wheel`.

Where libtprof.so is not preloaded nothing happens: scopes are entered and left, functions are called,
questions have empty answers.

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

import asyncio
import ctypes
import functools
import json
import logging
import threading
import time

__all__ = [
    "TprofError", "counter", "dump_and_reset", "enabled", "end", "end_step", "flush", "instant", "phase",
    "pop", "push", "rank", "reset", "scope", "start", "step", "totals", "traced",
]

_NOT_OPEN, _BAD_ARGUMENT, _TIMED_OUT = -1, -2, -3
_NEXT_STEP, _NO_STEP = -1, -2


class TprofError(RuntimeError):
    """What was told can't be: an end without its begin, a phase that there is not."""


class _With(ctypes.Structure):
    _fields_ = [("categories", ctypes.c_char_p), ("elements", ctypes.c_uint64), ("bytes", ctypes.c_uint64),
                ("time_ns", ctypes.c_uint64), ("error", ctypes.c_char_p)]


_text, _with, _u64, _int = ctypes.c_char_p, ctypes.POINTER(_With), ctypes.c_uint64, ctypes.c_int
# They keep the interpreter's lock: they return at once, and another thread may not come in between.
_quick = ctypes.PYFUNCTYPE


class _Functions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("push", _quick(_int, _text, _with)),
        ("pop", _quick(_int, _text, _with)),
        ("start", _quick(_u64, _text, _with)),
        ("end", _quick(_int, _u64, _with)),
        ("instant", _quick(_int, _text, _with)),
        ("counter", _quick(_int, _text, ctypes.POINTER(_text), ctypes.POINTER(ctypes.c_double), ctypes.c_size_t,
                           _u64)),
        ("step", _quick(_int, ctypes.c_int64)),
        ("phase", _quick(_int, _text)),
        ("reset", _quick(_int)),
        ("flush", ctypes.CFUNCTYPE(_int, ctypes.c_uint32)),  # the only one that may wait
        ("enabled", _quick(_int)),
        ("rank", _quick(_int)),
        ("totals", _quick(ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)),
        ("totals_and_reset", _quick(ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)),
    ]


def _find():
    try:
        found = _Functions.in_dll(ctypes.CDLL(None), "tprof_functions_v1")
    except (ValueError, OSError, TypeError):  # not preloaded, or a system without dlopen(NULL)
        return None
    return found if found.size >= ctypes.sizeof(_Functions) else None


_library = _find()


def _checked(result, what):
    if result == _NOT_OPEN:
        raise TprofError(f"{what}: no such scope is open")
    if result == _BAD_ARGUMENT:
        raise TprofError(f"{what}: see tprof.h for what it takes")


def _more(categories, elements, nbytes, time_ns, error=None):
    if categories is None and not elements and not nbytes and not time_ns and error is None:
        return None
    if categories is not None and not isinstance(categories, str):
        categories = ",".join(categories)
    return _With(categories and categories.encode(), elements or 0, nbytes or 0, time_ns or 0,
                 error and error.encode())


class _Sums:
    """Of the process's scopes by name, since reset(): for totals()."""

    def __init__(self):
        self.lock = threading.Lock()
        self.by_name = {}

    def add(self, name, ns, elements, nbytes):
        with self.lock:
            s = self.by_name.setdefault(name, {"count": 0, "total_ns": 0, "elements": 0, "bytes": 0})
            s["count"] += 1
            s["total_ns"] += ns
            s["elements"] += elements or 0
            s["bytes"] += nbytes or 0

    def taken(self, clear):
        with self.lock:
            sums = {name: dict(s) for name, s in self.by_name.items()}
            if clear:
                self.by_name = {}
        return sums


_sums = _Sums()
_open = threading.local()  # .names: of the thread's scopes by push(): (name, begin, elements, bytes)
_started = {}  # by id: the same


def push(name, categories=None, elements=0, bytes=0, time_ns=0):
    """A scope of this thread begins. `categories`: a text, or several. `time_ns`: time.time_ns() of
    when it was, 0: now."""
    if _library is None:
        return
    _checked(_library.push(name.encode(), _more(categories, elements, bytes, time_ns)), "push")
    _open.__dict__.setdefault("names", []).append((name, time_ns or time.time_ns(), elements, bytes))


def pop(name=None, elements=0, bytes=0, time_ns=0, error=None):
    """This thread's innermost scope ends, or its innermost of that name. TprofError where there is
    none. `error`: the type of the exception that left it."""
    if _library is None:
        return
    _checked(_library.pop(name and name.encode(), _more(None, elements, bytes, time_ns, error)), f"pop {name or ''}")
    names = _open.__dict__.get("names", [])
    for i in range(len(names) - 1, -1, -1):
        if name is None or names[i][0] == name:
            _ended(names.pop(i), elements, bytes, time_ns)
            break


def _ended(begun, elements, nbytes, time_ns):
    name, began, elements_before, bytes_before = begun
    _sums.add(name, max(0, (time_ns or time.time_ns()) - began), (elements_before or 0) + (elements or 0),
              (bytes_before or 0) + (nbytes or 0))


def start(name, categories=None, elements=0, bytes=0, time_ns=0):
    """A scope that any thread or task may end, by the number that this gives (0: it is not recorded)."""
    if _library is None:
        return 0
    number = _library.start(name.encode(), _more(categories, elements, bytes, time_ns))
    if number:
        _started[number] = (name, time_ns or time.time_ns(), elements, bytes)
    return number


def end(number, elements=0, bytes=0, time_ns=0, error=None):
    """Ends what start() began. TprofError where that has ended before."""
    if _library is None:
        return
    _checked(_library.end(number, _more(None, elements, bytes, time_ns, error)), "end")
    begun = _started.pop(number, None)
    if begun is not None:
        _ended(begun, elements, bytes, time_ns)


class scope:
    """A scope as a context manager, in coroutines too (`async with`): then any task may go on in
    between. What is known only at the end is said to it: `with scope("x") as s: s.elements = n`."""

    def __init__(self, name, categories=None, elements=0, bytes=0):
        self.name, self.categories, self.elements, self.bytes = name, categories, elements, bytes
        self._number = 0

    def __enter__(self):
        push(self.name, self.categories)
        return self

    def __exit__(self, kind, error, where):
        pop(self.name, self.elements, self.bytes, 0, kind and kind.__qualname__)
        return False

    async def __aenter__(self):
        self._number = start(self.name, self.categories)
        return self

    async def __aexit__(self, kind, error, where):
        end(self._number, self.elements, self.bytes, 0, kind and kind.__qualname__)
        return False


def traced(name=None, categories=None):
    """A decorator: each call of the function is a scope, of its qualified name if there is no other.
    Of coroutine functions each await."""

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
    """A moment."""
    if _library is not None:
        _checked(_library.instant(name.encode(), _more(categories, 0, 0, time_ns)), "instant")


def counter(name, values, time_ns=0):
    """What up to 8 values are from now on: a dict of numbers, or one number."""
    if _library is None:
        return
    if not isinstance(values, dict):
        values = {name: values}
    keys = (ctypes.c_char_p * len(values))(*[str(k).encode() for k in values])
    numbers = (ctypes.c_double * len(values))(*[float(v) for v in values.values()])
    _checked(_library.counter(name.encode(), keys, numbers, len(values), time_ns), "counter")


class _Entered:
    """What has begun, and ends with a `with` block if there is one."""

    def __init__(self, leave):
        self._leave = leave

    def __enter__(self):
        return self

    def __exit__(self, kind, error, where):
        self._leave()
        return False


def step(number=None):
    """A training step begins, and the one before it ends: `number`, or one more than the last (the
    first is 1). As a context manager it ends with its block."""
    if _library is not None:
        _checked(_library.step(_NEXT_STEP if number is None else number), "step")
    return _Entered(end_step)


def end_step():
    """The step ends, and none begins."""
    if _library is not None:
        _library.step(_NO_STEP)


def phase(name):
    """What this thread does until it says otherwise: "load", "forward", "backward", "optimizer", or
    None. As a context manager it ends with its block."""
    if _library is not None:
        _checked(_library.phase(name and name.encode()), f"phase {name}")
    return _Entered(lambda: phase(None))


def reset():
    """totals() counts from here. What is in the trace counts the whole run all the same."""
    if _library is not None:
        _library.reset()
        _sums.taken(True)


def flush(timeout=1.0):
    """All that was told and called before is in the rank file. False: not within `timeout` seconds."""
    return _library is None or _library.flush(int(timeout * 1000)) != _TIMED_OUT


def enabled():
    """Whether what is told is recorded."""
    return _library is not None and bool(_library.enabled())


def rank():
    """The process's rank, as the launcher or its largest communicator told it; None: not known."""
    found = -1 if _library is None else _library.rank()
    return None if found < 0 else found


def _buckets(ask):
    size = 1 << 14
    while True:
        text = ctypes.create_string_buffer(size)
        needed = ask(text, size)
        if needed <= size:
            return json.loads(text.value or b"{}").get("buckets", {})
        size = needed + 256


def totals():
    """This process's exact counts since reset(): by bucket (calls, count, elements, bytes, host_ns,
    device_ns, device_timed, failed; "ALL" is all of them), and by the name of each scope (count,
    total_ns, elements, bytes). Empty where the library is not preloaded."""
    if _library is None:
        return {}
    return {**_sums.taken(False), **_buckets(_library.totals)}


def dump_and_reset(message="", logger=None):
    """totals() as one line of `logger` (by default this module's), at level INFO; with a reset() at that moment."""
    if _library is None:
        return
    found = {**_sums.taken(True), **_buckets(_library.totals_and_reset)}
    (logger or logging.getLogger(__name__)).info("%s%s", message, json.dumps(found))
