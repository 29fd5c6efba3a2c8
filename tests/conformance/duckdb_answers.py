#!/usr/bin/env python3
"""Prints what DuckDB answers to queries over Parquet files, as JSON.

usage: duckdb_answers.py FOLDER < QUERIES

Each FOLDER/NAME.parquet is a table; QUERIES is a JSON list of texts, the answer a list of lists of rows.
Exit status: 0; 1 where DuckDB cannot be installed, with the reason on stderr; 2 for wrong usage.
"""

import json
import math
import sys
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import place


def main():
    if len(sys.argv) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        sys.path.insert(0, str(place.duckdb()))
    except place.Missing as reason:
        print(reason, file=sys.stderr)
        return 1
    import duckdb

    connection = duckdb.connect()
    for file in sorted(Path(sys.argv[1]).glob("*.parquet")):
        connection.sql(f"""CREATE VIEW "{file.stem}" AS SELECT * FROM '{file}'""")
    answers = []
    for query in json.load(sys.stdin):
        # That of DuckDB takes one of the values, ours lies between two.
        rows = connection.execute(query.replace("quantile(", "quantile_cont(")).fetchall()
        answers.append([[plain(value) for value in row] for row in rows])
    json.dump(answers, sys.stdout)
    return 0


def plain(value):
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


sys.exit(main())
