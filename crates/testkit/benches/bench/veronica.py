"""Measures veronica-core, the original of the parent-linked budget, and prints one JSON object.

Times are nanoseconds per operation, the least of several rounds; throughput is operations per second.
"""
import json
import threading
import time
import tracemalloc

from veronica_core.containment import ExecutionConfig, ExecutionContext, WrapOptions

MANY = 10**9
HINT = WrapOptions(cost_estimate_hint=0.000001)


def root():
    return ExecutionContext(ExecutionConfig(max_cost_usd=1e9, max_steps=MANY, max_retries_total=MANY))


def child(parent):
    return parent.spawn_child(max_cost_usd=1e9, max_steps=MANY, max_retries_total=MANY)


def chain(depth):
    contexts = [root()]
    for _ in range(depth - 1):
        contexts.append(child(contexts[-1]))
    return contexts


def work():
    return 1


def call(context):
    context.wrap_llm_call(fn=work, options=HINT)


def least(rounds, count, make, run):
    best = float("inf")
    for _ in range(rounds):
        thing = make()
        start = time.perf_counter_ns()
        for _ in range(count):
            run(thing)
        best = min(best, (time.perf_counter_ns() - start) / count)
    return best


def spawn_and_call(parent):
    with child(parent) as context:
        call(context)


def throughput(threads, each):
    top = root()
    start = threading.Barrier(threads + 1)

    def run():
        start.wait()
        for _ in range(each):
            call(top)

    workers = [threading.Thread(target=run) for _ in range(threads)]
    for worker in workers:
        worker.start()
    start.wait()
    began = time.perf_counter()
    for worker in workers:
        worker.join()
    return threads * each / (time.perf_counter() - began)


def bytes_per_context(count):
    top = root()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = [child(top) for _ in range(count)]
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (after - before) / len(kept)


figures = {f"call_{depth}": least(20, 500, lambda depth=depth: chain(depth)[-1], call) for depth in (1, 3, 10)}
figures["call_300"] = least(2, 20, lambda: chain(300)[-1], call)
figures["spawn_call"] = least(20, 200, root, spawn_and_call)
figures["threads_2"] = throughput(2, 2000)
figures["threads_8"] = throughput(8, 500)
figures["bytes"] = bytes_per_context(500)
print(json.dumps(figures))
