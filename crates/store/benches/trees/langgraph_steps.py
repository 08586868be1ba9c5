"""Measures durable steps of LangGraph with its SqliteSaver and prints one JSON object.

Times are nanoseconds per step of 200 bytes; a step is durable before the next begins, as ours is. `…_bare` is a bare
insert at the same level of fsync, taken between the steps: a disk's fsync may cost forty times more a minute later.
`bytes` is what a thousand such steps leave on the disk.
"""
import json
import operator
import os
import sqlite3
import tempfile
import time
from typing import Annotated, TypedDict

from bare import Bare
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

STEPS = 1_000
SAID = "x" * 200


class State(TypedDict):
    said: Annotated[list, operator.add]


def steps(level):
    with tempfile.TemporaryDirectory() as home:
        connection = sqlite3.connect(os.path.join(home, "graph.sqlite3"), check_same_thread=False)
        saver = SqliteSaver(connection)
        saver.setup()
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        connection.execute(f"PRAGMA synchronous={level}")
        bare = Bare(level)

        def step(state):
            bare.sometimes()
            return {"said": [SAID]}

        graph = StateGraph(State)
        graph.add_node("step", step)
        graph.add_edge(START, "step")
        graph.add_conditional_edges("step", lambda state: "step" if len(state["said"]) < STEPS else END)
        graph = graph.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "1"}, "recursion_limit": STEPS + 5}
        start = time.perf_counter_ns()
        ended = graph.invoke({"said": []}, config, durability="sync")
        each = (time.perf_counter_ns() - start - bare.spent) / STEPS
        assert len(ended["said"]) == STEPS
        connection.close()
        return each, bare.each(), sum(os.path.getsize(os.path.join(home, file)) for file in os.listdir(home))


normal, normal_bare, size = steps("NORMAL")
full, full_bare, _ = steps("FULL")
times = {"normal": normal, "normal_bare": normal_bare, "full": full, "full_bare": full_bare}
print(json.dumps(times | {"bytes": size}))
