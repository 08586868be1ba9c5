"""Measures LangGraph's graphs in memory and prints one JSON object: nanoseconds per step, the least of some runs."""
import json
import operator
import time
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

SAID = "x" * 200


class State(TypedDict):
    said: Annotated[list, operator.add]


def step(state):
    return {"said": [SAID]}


def chain(steps):
    graph = StateGraph(State)
    names = [f"s{number}" for number in range(steps)]
    for name in names:
        graph.add_node(name, step)
    for before, after in zip([START] + names, names + [END]):
        graph.add_edge(before, after)
    return graph.compile()


def fan(steps):
    graph = StateGraph(State)
    graph.add_node("root", lambda state: {"said": []})
    graph.add_node("step", step)
    graph.add_edge(START, "root")
    graph.add_conditional_edges("root", lambda state: [Send("step", {}) for _ in range(steps)], ["step"])
    graph.add_edge("step", END)
    return graph.compile()


def per_step(graph, steps):
    start = time.perf_counter_ns()
    ended = graph.invoke({"said": []}, {"recursion_limit": steps + 10})
    assert len(ended["said"]) == steps
    return (time.perf_counter_ns() - start) / steps


figures = {}
for shape in (chain, fan):
    for steps, runs in ((1_000, 3), (10_000, 1)):
        # A step takes LangGraph longer the more nodes there are. 2,000 are enough to see it, and take seconds.
        measured = 2_000 if shape is chain and steps == 10_000 else steps
        graph = shape(measured)
        figures[f"{shape.__name__}_{steps}"] = min(per_step(graph, measured) for _ in range(runs))
print(json.dumps(figures))
