"""tprof export --parquet: DuckDB and pyarrow read the same from it as SQLite from --sqlite."""

import os
import re
import shutil
import sqlite3
import sys

import pytest
from lib import jobs, needs
from lib.tool import generate, tprof
from test_export_page import PAGE, QUERIES, loop  # noqa: F401  a fixture
from test_merge import damage
from test_summary_ranges import pushed, with_lines

TABLES = ("job", "processes", "threads", "communicators", "ledger", "calls", "ranges", "steps")
# The first python3 is that of the tests, which has pyarrow.
WITH_PYARROW = os.environ | {"PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}
IN_THE_PATH = ("run", "attempt", "ranks")


@pytest.fixture(autouse=True, scope="module")
def packages():
    needs.package("duckdb")
    needs.package("pyarrow")


def export(traces, to, *more, status=0, env=WITH_PYARROW):
    done = tprof("export", traces, "--parquet", to, *more, env=env)
    assert done.returncode == status, done.stderr
    return done.stderr


def in_sqlite(traces, file):
    done = tprof("export", traces, "--sqlite", file)
    assert done.returncode in (0, 1), done.stderr
    return sqlite3.connect(file)


def views(lake):
    import duckdb

    db = duckdb.connect()
    for table in TABLES:
        files = f"{lake}/{table}/**/*.parquet"
        db.execute(f"CREATE VIEW {table} AS FROM read_parquet('{files}', hive_partitioning = true)")
    return db


def ordered(rows):
    return sorted(rows, key=repr)


def near(rows):
    """Sums of reals may differ in the last digits, as their order is free."""
    return [tuple(pytest.approx(v, rel=1e-9) if isinstance(v, float) else v for v in row) for row in rows]


def files_of(lake, table):
    return sorted(str(file.relative_to(lake / table)) for file in (lake / table).rglob("*") if file.is_file())


def differences(lake, sqlite):
    """Returns the tables whose rows or columns are not the same for DuckDB as for SQLite."""
    db = views(lake)
    different = []
    for table in TABLES:
        columns = [row[1] for row in sqlite.execute(f"SELECT * FROM pragma_table_info('{table}')")]
        read = [row[0] for row in db.execute(f"DESCRIBE {table}").fetchall()]
        chosen = ", ".join(columns)
        expected = [tuple(row) for row in sqlite.execute(f"SELECT {chosen} FROM {table}")]
        found = db.execute(f"SELECT {chosen} FROM {table}").fetchall()
        if {*read} != {*columns, *IN_THE_PATH} - ({"ranks"} if table not in ("calls", "ranges") else set()):
            different.append((table, read))
        if ordered(found) != ordered(expected):
            different.append(table)
    return different


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """Returns traces and data set of 130 ranks, of which the last is in a file of its own. Rank 64, the first of its
    file, is left out as a line of it is damaged."""
    folder = tmp_path_factory.mktemp("wide")
    jobs.healthy(130, 12, 7).write(folder / "traces")
    what = damage(folder / "traces/rank-00064.json")
    assert f"error: {what}; left out" in export(folder / "traces", folder / "lake", status=1)
    return folder / "traces", folder / "lake"


def test_it_has_what_sqlite_has_by_run_and_ranks(wide, tmp_path):
    traces, lake = wide
    sqlite = in_sqlite(traces, tmp_path / "run.db")
    assert differences(lake, sqlite) == []
    (of_run,) = {f"run={run}/attempt={n}" for run, n in sqlite.execute("SELECT run_id, attempt FROM job")}
    parts = [f"{of_run}/ranks={first:05}-{first + 63:05}/part.parquet" for first in (0, 64, 128)]
    for table in TABLES:
        # Without ranges there is a file, so that there is a table.
        in_parts = {"calls": parts, "ranges": parts[:1]}.get(table, [f"{of_run}/part.parquet"])
        assert files_of(lake, table) == in_parts
    assert sqlite.execute("SELECT count(*) FROM ranges").fetchone() == (0,)
    db = views(lake)
    of_ranks = db.execute("SELECT ranks, min(rank), max(rank) FROM calls GROUP BY 1 ORDER BY 1").fetchall()
    assert of_ranks == [("00000-00063", 0, 63), ("00064-00127", 65, 127), ("00128-00191", 128, 129)]


def test_pyarrow_reads_only_the_files_it_needs(wide, tmp_path):
    import pyarrow.dataset

    traces, lake = wide
    calls = pyarrow.dataset.dataset(lake / "calls", partitioning="hive")
    wanted = pyarrow.dataset.field("ranks") == "00128-00191"
    (fragment,) = calls.get_fragments(filter=wanted)
    found = calls.to_table(filter=wanted, columns=["rank", "function", "bytes"]).to_pylist()
    expected = in_sqlite(traces, tmp_path / "run.db").execute(
        "SELECT rank, function, bytes FROM calls WHERE rank >= 128 ORDER BY rowid"
    )
    assert [tuple(row.values()) for row in found] == expected.fetchall()
    assert calls.schema.field("bytes").type == "int64" and calls.schema.field("reduce").type == "string"


def test_the_queries_of_the_page_give_the_same(loop, tmp_path):  # noqa: F811
    folder, sqlite, _ = loop
    export(folder, tmp_path / "lake")
    assert differences(tmp_path / "lake", sqlite) == []
    (code,) = [code for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "duckdb" in code]
    known = {}
    exec(code.replace("FOLDER", str(tmp_path / "lake")), known)
    db = known["db"]
    for query in QUERIES:
        expected = [tuple(row) for row in sqlite.execute(query)]
        found = db.execute(query).fetchall()
        if "ORDER BY" not in query.rsplit(")", 1)[-1]:
            expected, found = ordered(expected), ordered(found)
        assert expected and found == near(expected), query


def test_names_of_all_kinds_come_back(tmp_path):
    names = ["NULL", "nan", 'a,"b"', "two\r\nlines", "ends with \\", "<b>\u00e9\u4e2d</b>", "'", "=1+1", " spaces ", "nul\0in"]
    payloads = [2**53 + 2, -1.5, 1e300, 2**63]
    lines = [pushed(name, i + 1, 0.5, payload=payloads[i % 4]) for i, name in enumerate(names)]
    with_lines(tmp_path / "run", lines)
    export(tmp_path / "run", tmp_path / "lake")
    db = views(tmp_path / "lake")
    found = db.execute("SELECT name, payload, domain FROM ranges ORDER BY ts_ns").fetchall()
    assert found == [(name, float(payloads[i % 4]), None) for i, name in enumerate(names)]


def test_runs_that_are_copied_together_stay_apart(tmp_path):
    """A run may have any name: Hive's folders spell it with percent signs."""
    import pyarrow.dataset

    for run, ranks in (("a/b c=%41", 2), ("plain", 3)):
        generate(tmp_path / "run", ranks, 20)
        for file in (tmp_path / "run").iterdir():
            file.write_text(file.read_text().replace('"run_id":"job-0"', f'"run_id":"{run}"'))
        export(tmp_path / "run", tmp_path / "one")
        shutil.copytree(tmp_path / "one", tmp_path / "lake", dirs_exist_ok=True)
        shutil.rmtree(tmp_path / "one")
        shutil.rmtree(tmp_path / "run")
    db = views(tmp_path / "lake")
    counts = "SELECT run, count(DISTINCT rank), count(*) FROM calls GROUP BY run ORDER BY run"
    assert db.execute(counts).fetchall() == [("a/b c=%41", 2, 40), ("plain", 3, 60)]
    calls = pyarrow.dataset.dataset(tmp_path / "lake/calls", partitioning="hive")
    assert calls.count_rows(filter=pyarrow.dataset.field("run") == "a/b c=%41") == 40
    jobs_of = db.execute("SELECT run_id, run, attempt FROM job ORDER BY run").fetchall()
    assert [(run_id, run) for run_id, run, _ in jobs_of] == [("a/b c=%41",) * 2, ("plain",) * 2]


def test_a_sum_beyond_63_bits_is_the_largest_integer(tmp_path):
    generate(tmp_path / "run", 1, 20)
    file = tmp_path / "run/rank-00000.json"
    text = re.sub(r'"host_ns":\d+', f'"host_ns":{2**64 - 1}', file.read_text())
    file.write_text(text)
    export(tmp_path / "run", tmp_path / "lake")
    assert views(tmp_path / "lake").execute("SELECT max(host_ns) FROM ledger").fetchone() == (2**63 - 1,)


def python3(folder, script):
    folder.mkdir()
    (folder / "python3").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "python3").chmod(0o755)
    return os.environ | {"PATH": str(folder)}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (f'exec {sys.executable} -S -E "$@"', "No module named 'pyarrow'"),
        ("exit 127", "there is no python3"),
        (None, "there is no python3"),
    ],
)
def test_without_pyarrow_one_line_says_what_to_do(tmp_path, script, said):
    generate(tmp_path / "run", 1, 20)
    env = python3(tmp_path / "bin", script)
    if script is None:
        (tmp_path / "bin/python3").unlink()
    text = export(tmp_path / "run", tmp_path / "lake", status=2, env=env)
    assert text.count("\n") == 1 and said in text and "pip install pyarrow" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "run"]


@pytest.mark.parametrize(
    ("ends", "said"),
    [("kill -9 $$", "python3 was killed"), ("echo x; echo calls: no space; exit 1", "calls: no space")],
)
def test_a_writer_that_fails_leaves_nothing_half(tmp_path, ends, said):
    """It writes the first file and fails at another."""
    generate(tmp_path / "run", 1, 20)
    env = python3(tmp_path / "bin", f"[ -e tables.db ] || exit 0; : >half.parquet; {ends}")
    text = export(tmp_path / "run", tmp_path / "lake", status=2, env=env)
    assert text.count("\n") == 1 and said in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "run"]
