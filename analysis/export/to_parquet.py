"""Makes a Parquet file of each CSV file that standard input names; `tprof export --parquet` runs it.

Standard input is a list of {"csv": FILE, "parquet": FILE, "columns": {NAME: TYPE}}; each CSV file is
removed when its Parquet file is whole. With an empty list it only says whether pyarrow is there.
"""

import json
import os
import sys

# A module has to come from Python's folders, not from where the command was started.
sys.path = [folder for folder in sys.path if folder]

try:
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet
except Exception as error:  # pyarrow may be there and not fit numpy, or the C library
    sys.exit(f"{sys.executable}: {str(error).splitlines()[0]}")

BLOCK_BYTES = 1 << 24
ROWS_PER_GROUP = 1 << 19  # 100 MB in memory of the widest table


def row_groups(batches):
    """Yields tables of about ROWS_PER_GROUP rows, however few of them a block of text holds."""
    held = []
    for batch in batches:
        held.append(batch)
        if sum(b.num_rows for b in held) >= ROWS_PER_GROUP:
            yield pyarrow.Table.from_batches(held)
            held = []
    if held:
        yield pyarrow.Table.from_batches(held)


def convert(job):
    columns = {name: pyarrow.type_for_alias(kind) for name, kind in job["columns"].items()}
    batches = pyarrow.csv.open_csv(
        job["csv"],
        read_options=pyarrow.csv.ReadOptions(block_size=BLOCK_BYTES),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        # No text is empty, and "NULL" or "nan" may be names.
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=columns, null_values=[""], strings_can_be_null=True
        ),
    )
    with pyarrow.parquet.ParquetWriter(job["parquet"], batches.schema, compression="zstd") as to:
        for table in row_groups(batches):
            to.write_table(table, row_group_size=table.num_rows)
    os.unlink(job["csv"])


for job in json.load(sys.stdin):
    try:
        convert(job)
    except Exception as error:
        sys.exit(f"{job['parquet']}: {str(error).splitlines()[0]}")
