"""Shapes of training, and ways in which their steps end for the host, as tests/clients/device_work.cpp makes them:
statements of streams (compute, comm, side, copies) and times in us."""

import dataclasses

from lib.build import BUILD

CLIENT = BUILD / "device_work"

ENDINGS = {
    "nothing": "", "item": "item compute", "stream_synchronize": "sync compute", "device_synchronize": "sync",
    "event_synchronize": "record compute end; await end",
    "polled": "record compute end; poll end",  # now and then, like a program that has other things to do
    "idle_host": "sleep 40000",  # it waits for nothing, and comes back when the device has long been idle
}  # fmt: skip
END = "END"  # of a step


def layer(call: str, beside: int, us: int, last_us: int, on: str = "compute") -> str:
    """Makes a call on `comm` and launches kernels beside it; they wait for the call before a last one."""
    return (
        f"order {on} comm; {call}; record comm done; kernel {on} {us} {beside}; wait {on} done; kernel {on} {last_us}; "
    )


def beside(call: str, *kernels: str) -> str:
    """Makes a call on `comm`, kernels beside it, and the last one of them behind it."""
    *most, last = kernels
    return "; ".join(["order compute comm", call, *most, "order comm compute", last]) + "; "


@dataclasses.dataclass(frozen=True)
class Shape:
    steps: list[str]  # they take turns
    before: str = ""
    behind: str = ""
    beside: str = ""  # on another thread, again and again
    times: int = 1  # for each step that is asked for


def each(step: str, before: str = "", behind: str = "", beside: str = "") -> Shape:
    return Shape([step + "; END"], before, behind, beside)


GRAPHED = "capture compute; {}; captured compute graph"
BUCKET = "order compute comm; reduce comm {}; record comm done; "

SHAPES = {
    # They differ in how much of a call computation hides, and in how it is waited for.
    "partly_hidden": each(3 * layer("gather comm 8000", 5, 1000, 500)),  # 5 of 8 ms
    "in_time": each(3 * layer("scatter comm 3000", 5, 1000, 500)),  # over when somebody comes to wait for it
    # Each layer's all-gather is issued a layer ahead, and the wait for it is short.
    "many_waits": each(
        "order compute comm; gather comm 1000; record comm ready; "
        + 19 * "wait compute ready; gather comm 1000; record comm ready; kernel compute 440 2; "
        + "wait compute ready; kernel compute 440 2"
    ),
    "under_one_kernel": each("order compute comm; gather comm 6800; kernel compute 6000; sync"),  # only the host waits
    # The host waits for a copy of its own while the device goes on computing.
    "d2h_awaited": each(
        "order compute copies; d2h copies 3000; record copies copied; kernel compute 1000 8; order compute comm; "
        "reduce comm 2000; record comm reduced; kernel compute 1000 3; await copied; wait compute reduced; "
        "kernel compute 1000"
    ),
    # The host is far ahead: nothing is read back before hundreds of calls are queued.
    "queued_ahead": Shape([layer("gather comm 500", 1, 475, 25)], behind=END, times=120),
    # The optimizer launches 150 tiny kernels, and parameters are gathered beside them.
    "tiny_kernels": each("kernel compute 1000 3; " + beside("gather comm 4000", "kernel compute 20 150", "kernel compute 500")),
    "one_long_kernel": Shape(
        ["gather comm 20000; h2d copies 5000; sync copies"], "kernel compute 2000000", "sync comm; END"
    ),
    "short_kernels": each(40 * beside("gather comm 300", "kernel compute 50 4", "kernel compute 50 2")),
    "grouped": each(layer("group" + 4 * "; gather comm 1000" + "; end_group", 5, 500, 500)),
    "two_communicators": each(
        "kernel compute 500 4; order compute comm; order compute side; reduce comm 3000; gather side 2000 other; "
        "kernel compute 500 3; order side compute; kernel compute 500; order comm compute; kernel compute 300",
        "comm other",
    ),
    # There is a copy between the calls of a group, as in c10d's scatter.
    "copy_in_group": each(
        "kernel compute 500 2; order compute comm; group; send comm 700; receive comm 700; d2d comm 400; end_group; "
        "kernel compute 500; order comm compute; reduce compute 500"
    ),
    "work_beside_calls": each(3 * (
        "order compute comm; kernel comm 200; gather comm 2000; kernel comm 200; record comm done; kernel compute 700 2; "
        "wait compute done; kernel compute 500; "
    )),
    "waits_in_a_row": each(3 * (
        "order compute comm; " + 3 * "gather comm 700; order comm compute; "
        + "order side compute; order copies compute; kernel compute 500 2; "
    )),
    "one_kernel_a_step": each("order compute comm; gather comm 5000; kernel compute 2000; order comm compute; sleep 8000"),
    # Nothing computes while parameters are broadcast before the training and gathered after it.
    "before_and_behind": each(
        "kernel compute 500 4; " + layer("reduce comm 1500", 2, 500, 300),
        10 * "broadcast comm 1500; " + "sync", 10 * "gather comm 1500; " + "sync",
    ),
    # This is put on the device by kinds of training.
    "ddp": each(
        "h2d compute 1000; kernel compute 1000 4; " + 4 * ("kernel compute 1000 2; " + BUCKET.format(2300))
        + "wait compute done; kernel compute 100 10"
    ),
    "ddp_copies": each(  # fill and empty the buckets, on the stream that computes
        "kernel compute 1000 4; " + 4 * ("kernel compute 500 2; " + 4 * "d2d compute 300; " + BUCKET.format(2500))
        + "wait compute done; " + 4 * "d2d compute 300; " + "kernel compute 100 10"
    ),
    # FSDP2 of PyTorch 2.8 and later: reduce-scatters have a stream of their own, but use the communicator of the
    # all-gathers. NCCL therefore makes all-gathers wait for them. Light kernels prepare both.
    "fsdp2": each(
        3 * ("order compute copy_in; kernel copy_in 50; order copy_in comm; gather comm 1500; order comm compute; "
             "kernel compute 50; kernel compute 500 2; ")
        + 3 * ("order copy_in comm; gather comm 1500; order comm compute; kernel compute 500 4; order compute scatters; "
               "kernel scatters 100; scatter scatters 2500; kernel scatters 50; record scatters reduced; ")
        + "wait compute reduced; kernel compute 100 5",
        "stream copy_in; stream scatters",
    ),
    "accumulation": each(
        "kernel compute 1000 12; " + 3 * "kernel compute 700; order compute comm; reduce comm 1200; "
        + "order comm compute; kernel compute 300 3"
    ),
    "tensor_parallel": each(6 * "kernel compute 600 2; reduce compute 500; "),
    "tensor_parallel_beside": each(
        6 * "kernel compute 600 2; order compute side; kernel side 500; reduce compute 1000; "
    ),
    # ZeRO-3 fetches parameters of the next layers ahead, and reduces gradients on the same stream.
    "zero3": each(
        "gather comm 800; record comm r0; gather comm 800; record comm r1; "
        + "".join(
            f"wait compute r{n}; gather comm 800; record comm r{n + 2}; kernel compute 700; "
            + ("order compute comm; scatter comm 600; " if n >= 4 else "")
            for n in range(8)
        )
        + "order comm compute; kernel compute 50 20"
    ),
    "pipeline": each(
        4 * "group; send comm 700; receive comm 700; end_group; order comm compute; kernel compute 600 2; "
        + "order compute comm; reduce comm 2000; order comm compute; kernel compute 500"
    ),
    # Tokens go to the experts and come back; a shared expert computes meanwhile.
    "experts": each(
        4 * ("kernel compute 400; order compute comm; all_to_all comm 1000 experts; record comm there; kernel compute 600; "
             "wait compute there; kernel compute 800; all_to_all compute 1000 experts; ")
        + "order compute comm; reduce comm 3000; order comm compute; kernel compute 500",
        "comm experts",
    ),
    # The norm of the gradients is read between the reduction and the optimizer.
    "clipping": each(
        "kernel compute 500 6; " + beside("reduce comm 2000", "kernel compute 500 2", "kernel compute 100")
        + "reduce compute 50; item compute; kernel compute 200 4"
    ),
    # After every fifth training step come a pause and a step without collectives.
    "evaluation": Shape(
        4 * [(step := "kernel compute 500 4; " + layer("reduce comm 1500", 2, 500, 300) + END)]
        + [step + "; sync; sleep 100000; kernel compute 500 40; item compute; sleep 30000"]
    ),
    # The computation is a graph that is replayed, and the calls are outside it.
    "graphs": each(
        3 * "order compute comm; gather comm 4000; record comm done; launch compute graph; wait compute done; ",
        GRAPHED.format("kernel compute 600 5"),
    ),
    "graphs_with_calls": each(
        "order compute comm; launch compute graph; gather comm 5000 other; order comm compute; kernel compute 800",
        "comm other; " + GRAPHED.format("kernel compute 600 2; reduce compute 1500; kernel compute 300"),
    ),
    # Hosts that are late, away or busy with other threads.
    "cpu_bound": each(  # the device idles within the step
        "order compute comm; reduce comm 6000; " + 8 * "kernel compute 300; sleep 700; "
        + "order comm compute; kernel compute 300"
    ),
    # A thread writes a checkpoint: it waits for its own copies only. The job ends when some are written, though its own
    # steps may all be queued before the first.
    "checkpoint_thread": each(
        "kernel compute 1000 8; " + layer("reduce comm 2000", 3, 1000, 1000),
        "stream mine", "times_beside 8", "d2h mine 3000; sync mine; sleep 3000",
    ),
    # One thread computes, another communicates, and they know nothing of each other.
    "two_threads": Shape(["kernel compute 500 10; END; sleep 1000"], beside="reduce comm 2000; sync comm; sleep 500"),
    "loader": each(
        "kernel compute 500 6; order compute comm; reduce comm 1500; order comm compute; kernel compute 500",
        beside="at_most_ahead 1; h2d copies 1500; sync copies",
    ),
    # Another thread checks every 2 ms how far the calls are, as a watchdog does.
    "watched": each(3 * layer("reduce comm 2000", 2, 600, 300), beside="query done; sleep 2000"),
    "synchronizing_thread": each(3 * layer("gather comm 2000", 2, 600, 300), beside="sync; sleep 1000"),
    # Host functions block the stream that computes, and nothing computes meanwhile.
    "host_functions": each(
        "order compute comm; gather comm 6000; " + 3 * "kernel compute 500; host compute 1500; "
        + "order comm compute; kernel compute 500"
    ),
    # The host queues much, and in every other step is then away for as long as the device needs.
    "queued_and_away": Shape([
        (step := layer("gather comm 6000", 4, 1000, 1000) + "kernel compute 1000 3; ") + "sleep 22000; END", step + END,
    ]),
    # They differ in which streams and devices compute.
    "other_stream_first": each(layer("gather comm 6200", 1, 2000, 3000), "kernel side 10000 200; sync side"),
    # A second stream computes a little, also where the first one waits: only that overlaps the end of the gather.
    "light_second_stream": each(3 * (
        "order compute comm; gather comm 4000; record comm done; order compute side; kernel side 3900; "
        "kernel compute 2000; wait compute done; kernel compute 1000 40; "
    )),
    # Computation on one device hides nothing on the other.
    "two_devices": each(
        "device 1; reduce comm1 3000 world1; kernel compute1 500; device 0; gather comm 3000; kernel compute 1000 4; "
        "order comm compute; END; device 1; sync comm1; sync compute1; device 0",
        "device 1; stream compute1; stream comm1; comm world1; device 0",
    ),
    # Streams come and go, and their addresses are reused by others.
    "streams_remade": each(
        "stream mine; stream calls; order mine calls; gather calls 3000; kernel mine 1000 2; order calls mine; "
        "kernel mine 500; order mine compute; destroy mine; destroy calls"
    ),
    "per_thread": each(layer("gather comm 3000", 2, 1000, 500, "thread") + "order thread compute"),
    "default_stream": each(3 * layer("gather comm 2000", 2, 700, 300, "default") + "order default compute"),
    # Calls on the default stream hold up a blocking stream's kernels, without an explicit wait.
    "implicit_order": each(
        3 * "kernel blocking 700 2; gather default 1500; " + "order default compute", "blocking_stream blocking"
    ),
    "ping_pong": each(  # two streams compute in turns, and each waits for the other
        "order compute comm; reduce comm 6000; record comm reduced; "
        + 4 * "kernel compute 500; order compute side; kernel side 500; order side compute; "
        + "wait compute reduced; kernel compute 1000"
    ),
    "many_streams": Shape(
        [
            "order compute comm; gather comm 5000; "
            + "".join(
                f"order compute s{(k + i) % 48}; kernel s{(k + i) % 48} 300; order s{(k + i) % 48} compute; kernel compute 100; "
                for k in range(0, 48, 6)
            )
            + "order comm compute; kernel compute 800; END"
            for i in range(20)
        ],
        "; ".join(f"stream s{i}" for i in range(48)),
    ),
    "rare_second_stream": Shape([
        f"order compute comm; gather comm 3000; kernel compute 1000; {more}order comm compute; kernel compute 1000; END"
        for more in (*9 * [""], "kernel side 4000; ")
    ]),
    "moves": Shape(  # to another stream, in the middle of the run
        10 * [layer("gather comm 3000", 2, 1000, 1000) + END]
        + 10 * [layer("gather comm 3000", 2, 1000, 1000, "side") + "order side compute; END"]
    ),
    # Other functions than the usual that launch kernels and wait for events.
    "other_launches": each(
        beside("gather comm 4000", "kernel_ex compute 1500; kernel_cooperative compute 1500", "kernel_ex compute 1500")
    ),
    "driver_launches": each(
        beside("gather comm 4000", "kernel_driver compute 1500; kernel_driver_ex compute 1500", "kernel_driver compute 500")
    ),
    "driver_waits": each(3 * (
        "order_driver compute comm; gather comm 3000; kernel compute 700 2; order_driver comm compute; "
        "kernel compute 500 2; "
    )),
}  # fmt: skip


def command(shape: Shape | str, ending: str = "nothing", steps: int = 20) -> list:
    shape = SHAPES[shape] if isinstance(shape, str) else shape
    end = f"{ENDINGS[ending]}; step_made"
    texts = (shape.before, shape.behind, shape.beside, *shape.steps)
    return [CLIENT, steps * shape.times, *(text.replace(END, end) for text in texts)]


def groups(number: int, calls: int, uneven: bool = False) -> list:
    """Returns the command of a program that makes all-gathers in groups, of one size or of several."""
    one = "group; " + "".join(f"gather compute {4096 << n * uneven}; " for n in range(calls)) + "end_group"
    return command(Shape([one]), steps=number)
