"""Makes a data set of Parquet files of the database tables.db in this folder; `tprof export --parquet` runs it.

Without the database it only says whether pyarrow is there.
"""

import itertools
import os
import pathlib
import sys
import urllib.parse

# A module has to come from Python's folders, not from where the command was started.
sys.path = [folder for folder in sys.path if folder]

try:
    import sqlite3

    import pyarrow
    import pyarrow.parquet
except Exception as error:  # pyarrow may be there and not fit numpy, or the C library
    sys.exit(f"{sys.executable}: {str(error).splitlines()[0]}")

DATABASE = "tables.db"
ROWS_AT_A_TIME = 1 << 14
ROWS_PER_GROUP = 1 << 19  # 100 MB in memory of the widest table
RANKS_PER_FILE = 64  # a rank's calls are some MB, and tools like files of some hundred
# SQLite's types are those of values, Parquet's of columns.
TYPES = {"INTEGER": pyarrow.int64(), "NUMERIC": pyarrow.float64(), "TEXT": pyarrow.string()}


def hive_folder(key, value):
    """Returns the name of a folder of Hive's, such as run=a%2Fb. It has a word for none."""
    text = "" if value is None else urllib.parse.quote(str(value), safe="")
    return f"{key}={text or '__HIVE_DEFAULT_PARTITION__'}"


def column(values, kind):
    if kind == pyarrow.int64():  # SQLite has a real number for a sum beyond it
        values = [2**63 - 1 if isinstance(value, float) else value for value in values]
    elif kind == pyarrow.float64():
        values = [None if value is None else float(value) for value in values]
    return pyarrow.array(values, kind)


def write_file(path, schema, rows):
    path.parent.mkdir(parents=True)
    with pyarrow.parquet.ParquetWriter(path, schema, compression="zstd") as to:
        held = []
        for more in iter(lambda: list(itertools.islice(rows, ROWS_AT_A_TIME)), []):
            columns = [column(values, field.type) for values, field in zip(zip(*more), schema)]
            held.append(pyarrow.record_batch(columns, schema=schema))
            if len(held) * ROWS_AT_A_TIME >= ROWS_PER_GROUP:
                to.write_table(pyarrow.Table.from_batches(held), row_group_size=ROWS_PER_GROUP)
                held = []
        if held:
            to.write_table(pyarrow.Table.from_batches(held), row_group_size=ROWS_PER_GROUP)


def write_table(db, table, run):
    """Ranks of a table with many rows have files of their own; rows are in their order."""
    columns = db.execute(f"PRAGMA table_info({table})").fetchall()
    # Readers add columns for the folders, which must not be there twice.
    schema = pyarrow.schema([(name, TYPES[kind]) for _, name, kind, *_ in columns if name != "attempt"])
    rank = schema.names.index("rank") if table in ("calls", "ranges") else None

    def ranks_of(row):
        return None if row[rank] is None or row[rank] < 0 else row[rank] // RANKS_PER_FILE

    def path(group):
        if rank is None:
            return pathlib.Path(table, run, "part.parquet")
        first = group and group * RANKS_PER_FILE
        ranks = None if group is None else f"{first:05}-{first + RANKS_PER_FILE - 1:05}"
        return pathlib.Path(table, run, hive_folder("ranks", ranks), "part.parquet")

    rows = db.execute(f"SELECT {', '.join(schema.names)} FROM {table} ORDER BY rowid")
    none = True
    for group, of_group in itertools.groupby(rows, (lambda row: 0) if rank is None else ranks_of):
        none = False
        write_file(path(group), schema, of_group)
    if none:
        write_file(path(0), schema, iter(()))


def main():
    db = sqlite3.connect(f"file:{DATABASE}?mode=ro", uri=True)
    # The name of a file may be any bytes.
    db.text_factory = lambda text: text.decode(errors="backslashreplace")
    [(run, attempt)] = db.execute("SELECT run_id, attempt FROM job")
    run = os.path.join(hive_folder("run", run), hive_folder("attempt", attempt))
    for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        try:
            write_table(db, table, run)
        except Exception as error:
            sys.exit(f"{table}: {str(error).splitlines()[0]}")
    db.close()
    os.unlink(DATABASE)


if os.path.exists(DATABASE):
    main()
