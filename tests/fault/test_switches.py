"""The settings by which a user turns parts of the tracing off."""

import pytest
from lib import runs

CALLS = runs.client("calls", 100, 2)


@pytest.mark.parametrize("value", ["1", "on", "yes", "true"])
def test_disabled_leaves_nothing_behind(value, tmp_path):
    traced = runs.run(tmp_path, CALLS, TPROF_DISABLE=value)
    assert traced.code == 7 and traced.stderr == ""
    assert not traced.traces.exists()


@pytest.mark.parametrize("value", ["0", "off", "no", "false", ""])
def test_not_disabled_after_all(value, tmp_path):
    traced = runs.run(tmp_path, CALLS, TPROF_DISABLE=value)
    (counts,) = traced.counted()
    runs.assert_exact(traced.only_rank_file(), counts)


def test_events_off_keeps_the_ledger(tmp_path):
    traced = runs.run(tmp_path, CALLS, TPROF_EVENTS="off")
    (counts,) = traced.counted()
    lines = traced.only_rank_file()
    runs.assert_exact(lines, counts)
    assert runs.events(lines) == []
    assert runs.footer(lines)["dropped"] == {"window": runs.calls_with_lines(counts)}


def test_events_all_lists_device_copies_too(tmp_path):
    traced = runs.run(tmp_path, CALLS, TPROF_EVENTS="all")
    (counts,) = traced.counted()
    lines = traced.only_rank_file()
    assert runs.ledger(lines) == runs.expected_ledger(counts)
    assert len(runs.events(lines)) == sum(entered for entered, _, _ in counts.values())


@pytest.mark.parametrize(("ranks", "listed"), [("0-2,5", True), ("4", False), ("5-", None)])
def test_ranks_that_write_lines(ranks, listed, tmp_path):
    traced = runs.run(tmp_path, CALLS, TPROF_RANKS=ranks, RANK="5", WORLD_SIZE="8")
    (counts,) = traced.counted()
    lines = traced.only_rank_file()
    runs.assert_exact(lines, counts)
    assert bool(runs.events(lines)) == (listed is not False)
    assert len(traced.complaints()) == (1 if listed is None else 0)


def test_secrets_on_the_command_line_are_left_out(tmp_path):
    command = ["bash", "-c", 'exec -a trainer "$0" "$@"', *CALLS, "--api-token", "abc", "key=1"]
    traced = runs.run(tmp_path, [*command, "WANDB_API_KEY=xyz", "--password=p w", "-v"])
    (header,) = runs.named(traced.only_rank_file(), "tprof_header")
    assert header["command"] == (
        "trainer calls 100 2 --api-token *** key=*** WANDB_API_KEY=*** --password=*** -v"
    )


def test_secrets_in_settings_are_left_out_of_the_header(tmp_path):
    secrets = {"TPROF_RUN_ID": "xoxb-" + "0123456789-0123456789", "NCCL_SOCKET_IFNAME": "ftp://me:word@host"}
    traced = runs.run(tmp_path, CALLS, **secrets)
    (header,) = runs.named(traced.only_rank_file(), "tprof_header")
    assert header["config"]["TPROF_RUN_ID"] == "***"
    assert header["env"] == {"NCCL_SOCKET_IFNAME": "ftp://***@host"}


def test_nothing_is_left_out_where_that_is_switched_off(tmp_path):
    traced = runs.run(tmp_path, [*CALLS, "--token", "abc"], TPROF_REDACT="off", NCCL_ALGO="a:b@c")
    (header,) = runs.named(traced.only_rank_file(), "tprof_header")
    assert header["command"].endswith("calls 100 2 --token abc")
    assert header["env"] == {"NCCL_ALGO": "a:b@c"}


def test_settings_in_force_are_in_the_header(tmp_path):
    traced = runs.run(tmp_path, CALLS, TPROF_RUN_ID='run "7"', NCCL_ALGO="Ring")
    (header,) = runs.named(traced.only_rank_file(), "tprof_header")
    assert header["run_id"] == header["config"]["TPROF_RUN_ID"] == 'run "7"'
    assert header["env"] == {"NCCL_ALGO": "Ring"}
