"""The situations of CUDA graphs in which the client graphs.cpp is put, by name."""

from lib.build import BUILD


def captured(graph="g"):
    """Most situations begin with this graph: 100 B to the device, and an all-gather of 16 floats."""
    return f"begin; upload 100; gather 16; end {graph}; "


def run(graph, times):
    return f"exec of_{graph} {graph}; launch of_{graph} {times}; exec_destroy of_{graph}; "


SITUATIONS = {
    # Captured
    "captured_into_a_graph": "graph g; node first g up 100; to_graph g first; gather 16; upload 200; end g; " + run("g", 2)
                             + "to_graph g first; upload 300; end g; " + run("g", 3),
    # The second capture replaces the contents of the graph.
    "captured_again": captured() + run("g", 2) + "recapture g; upload 300; gather 32; end g; " + run("g", 3),
    "dependencies_updated": "begin; upload 100; put_in 200; upload 300; end g; " + run("g", 2),
    # The launched graph becomes a part of what is captured.
    "launched_into_a_capture": captured() + "exec inner g; begin; upload 300; launch_in inner; launch_in inner; end whole; "
                               + run("whole", 5) + "launch inner",
    "own_default_stream": "begin_own; upload_own 100; end_own g; exec x g; launch_own x 3",
    "killed": captured() + "exec x g; launch x 5; begin; upload 700; kill",
    # Handles are often reused at once, each time for something else.
    "handles_reused": "".join(
        "begin; " + "upload 100; " * (i % 2 == 0) + f"gather {16 if i % 3 == 0 else 32}; end g; exec x g; destroy g; "
        f"launch x {i % 4}; exec_destroy x; graph g; " + run("g", 1) + "destroy g; "
        for i in range(50)
    ),
    # The library destroys the graph of a failed capture, and its handles are soon another's.
    "handles_of_failed_captures": 50 * ("begin; gather 16; upload 100; !sync; !end g; graph g; node a g up 1; node b g up 2; "
                                        "node c g up 3; " + run("g", 1) + "destroy g; "),
    # By hand
    "clone": captured() + "clone twin g; exec x g; destroy g; " + run("twin", 2) + "launch x 3",
    "child_graph": "graph parent; " + captured() + "child a parent g; node b parent up 300; " + run("parent", 2),
    "copies_by_hand": "graph g; node first g up 100; to_symbol to g first; from_symbol from g to; !node_nowhere n g; " + run("g", 5),
    "boxes_by_hand": "graph g; box first g up 10; any_box second g down 20 first; " + run("g", 2),
    # Only the device knows whether the node's body runs, and how often; at first it is empty.
    "conditional_node": "graph g; node n g up 100; conditional c g body; " + run("g", 1) + "to_graph body; upload 200; end body; "
                        + run("g", 3),
    # Executables
    "update_in_every_step": "".join(
        f"begin; upload {1000 if step % 3 == 0 else 100}; gather 16; end g; {'update' if step else 'exec'} x g; destroy g; launch x; "
        for step in range(300)
    ),
    "launched_by_the_device": captured() + "exec_device x g; launch x 2",
    # By the driver's functions, or past all preloads
    "made_past_the_wrappers": "graph_past g; node n g up 100; " + run("g", 3) + captured("h") + run("h", 2),
    "built_by_the_driver": "driver_graph g; driver_node g up 100; driver_node g down 20 4; driver_node g unified 300; "
                           "driver_kernel g; " + run("g", 2),
    # As NCCL makes them between its buffers: it is no copy of the program's.
    "copy_within_the_device": captured() + "driver_node g within 64; " + run("g", 3),
    "cloned_by_the_driver": captured() + "driver_clone twin g; " + run("twin", 3),
    "capture_begun_past_us": "driver_begin; driver_upload 100; driver_end g; " + run("g", 3),
    # Executables that are alive at a time, each launched once, and how many of them do something else
    "many_alive": "alive 40000 1",
    "many_different": "alive 20000 20000",
    "too_many_different": "alive 36000 36000",
}  # fmt: skip


def command(situation):
    return [BUILD / "graphs", SITUATIONS[situation]]
