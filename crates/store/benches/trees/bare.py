"""A bare insert into a file of its own, so that a step is measured against what the disk costs at that moment."""
import os
import sqlite3
import tempfile
import time

BODY = "z" * 700
EVERY = 4


class Bare:
    def __init__(self, level):
        self.home = tempfile.TemporaryDirectory()
        path = os.path.join(self.home.name, "bare.sqlite3")
        # Steps may run on any thread, one at a time.
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.execute(f"PRAGMA synchronous={level}")
        self.connection.execute(
            "CREATE TABLE batches (key INTEGER PRIMARY KEY, hash BLOB NOT NULL, body TEXT NOT NULL)"
        )
        self.asked = self.count = self.spent = 0

    def sometimes(self):
        """Inserts a row in every fourth step; `spent` is not the step's."""
        self.asked += 1
        if self.asked % EVERY:
            return
        start = time.perf_counter_ns()
        self.connection.execute("INSERT INTO batches VALUES (?, ?, ?)", (self.count, bytes(32), BODY))
        self.spent += time.perf_counter_ns() - start
        self.count += 1

    def each(self):
        return self.spent / self.count
