"""Measures durable steps of DBOS on SQLite and prints one JSON object: nanoseconds per step of 200 bytes.

`normal` and `full` set the journal mode and the level of fsync as ours are set; `default` leaves both as DBOS has them.
"""
import json
import os
import sys
import tempfile
import time

import sqlalchemy
from dbos import DBOS

STEPS = 200
SAID = "x" * 200
LEVELS = {
    "default": [],
    "normal": ["PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL"],
    "full": ["PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL"],
}
pragmas = []


@sqlalchemy.event.listens_for(sqlalchemy.Engine, "connect")
def on_connect(connection, _):
    for pragma in pragmas:
        connection.execute(pragma)


@DBOS.step()
def step():
    return SAID


@DBOS.workflow()
def run():
    for _ in range(STEPS):
        step()


def steps(level):
    pragmas[:] = LEVELS[level]
    with tempfile.TemporaryDirectory() as home:
        url = "sqlite:///" + os.path.join(home, "steps.sqlite3")
        DBOS(config={"name": "steps", "system_database_url": url, "run_admin_server": False, "log_level": "ERROR"})
        DBOS.launch()
        start = time.perf_counter_ns()
        run()
        each = (time.perf_counter_ns() - start) / STEPS
        DBOS.destroy()
        return each


# What the framework prints by itself is not for our reader.
out, sys.stdout = sys.stdout, sys.stderr
print(json.dumps({level: steps(level) for level in LEVELS}), file=out)
