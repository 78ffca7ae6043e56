"""Operations that a host issues, in order: its own work, and that of streams of its device. All times are integers
in ns."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Host:
    """The host computes: Python, data loading, anything outside of CUDA."""

    ns: int


@dataclasses.dataclass(frozen=True)
class Kernel:
    ns: int
    stream: str = "compute"


@dataclasses.dataclass(frozen=True)
class Collective:
    """An operation of NCCL. `count` is the API's, per rank."""

    function: str
    comm: str
    count: int
    dtype: str
    stream: str
    reduce: str | None = None
    peer: int | None = None  # a root or peer, as a rank of the communicator
    backward: bool = False  # issued by PyTorch's autograd thread
    sound: bool = False  # no link is slow while it runs
    group_ns: int = 0  # of the host in ncclGroupEnd, which enqueues it; 0: it is in no group


@dataclasses.dataclass(frozen=True)
class Copy:
    kind: str  # H2D or D2H
    bytes: int
    stream: str
    memory: str = "pinned"  # a pageable copy makes the host wait for it
    backward: bool = False


@dataclasses.dataclass(frozen=True)
class Record:
    """Records an event behind what `stream` was given so far."""

    stream: str
    event: str


@dataclasses.dataclass(frozen=True)
class Wait:
    """Makes all that `stream` is given from now on wait for the event."""

    stream: str
    event: str


@dataclasses.dataclass(frozen=True)
class Synchronize:
    """The host waits for all that `stream` was given so far."""

    stream: str = "compute"


@dataclasses.dataclass(frozen=True)
class StepMark:
    number: int


Operation = Host | Kernel | Collective | Copy | Record | Wait | Synchronize | StepMark
