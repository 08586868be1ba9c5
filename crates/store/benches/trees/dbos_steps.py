"""Measures durable steps of DBOS on SQLite and prints one JSON object: nanoseconds per step of 200 bytes.

`normal` and `full` set the journal mode and the level of fsync as ours are set; `default` leaves both as DBOS has them.
`…_bare` is a bare insert at that level of fsync, taken between the steps: a disk's fsync may cost forty times more a
minute later. Beside the default stands one at full.
"""
import json
import os
import sys
import tempfile
import time

import sqlalchemy
from bare import Bare
from dbos import DBOS

STEPS = 200
SAID = "x" * 200
LEVELS = {
    "default": [],
    "normal": ["PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL"],
    "full": ["PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL"],
}
pragmas = []
bare = None


@sqlalchemy.event.listens_for(sqlalchemy.Engine, "connect")
def on_connect(connection, _):
    for pragma in pragmas:
        connection.execute(pragma)


@DBOS.step()
def step():
    bare.sometimes()
    return SAID


@DBOS.workflow()
def run():
    for _ in range(STEPS):
        step()


def steps(level):
    global bare
    pragmas[:] = LEVELS[level]
    bare = Bare("NORMAL" if level == "normal" else "FULL")
    with tempfile.TemporaryDirectory() as home:
        url = "sqlite:///" + os.path.join(home, "steps.sqlite3")
        DBOS(config={"name": "steps", "system_database_url": url, "run_admin_server": False, "log_level": "ERROR"})
        DBOS.launch()
        start = time.perf_counter_ns()
        run()
        each = (time.perf_counter_ns() - start - bare.spent) / STEPS
        DBOS.destroy()
        return {level: each, f"{level}_bare": bare.each()}


# What the framework prints by itself is not for our reader.
out, sys.stdout = sys.stdout, sys.stderr
figures = {}
for level in LEVELS:
    figures |= steps(level)
print(json.dumps(figures), file=out)
