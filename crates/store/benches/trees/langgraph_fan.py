"""Measures LangGraph's fan-out in memory and prints one JSON object: nanoseconds per child, the least of three."""
import json
import operator
import time
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

CHILDREN = 1_000
SAID = "x" * 200


class State(TypedDict):
    results: Annotated[list, operator.add]


def child(state):
    return {"results": [SAID]}


def fan(state):
    return [Send("child", {"goal": "Do it."}) for _ in range(CHILDREN)]


graph = StateGraph(State)
graph.add_node("root", lambda state: {"results": []})
graph.add_node("child", child)
graph.add_edge(START, "root")
graph.add_conditional_edges("root", fan, ["child"])
graph.add_edge("child", END)
graph = graph.compile()


def per_child():
    start = time.perf_counter_ns()
    ended = graph.invoke({"results": []})
    assert len(ended["results"]) == CHILDREN
    return (time.perf_counter_ns() - start) / CHILDREN


print(json.dumps({"child": min(per_child() for _ in range(3))}))
