"""Measures the OpenAI Agents SDK's agents as tools, in memory, and prints one JSON object: nanoseconds per child, the
least of two.

The root asks for a thousand of them in its first answer; each of them and the root then answer at once. All of it is
one thread that waits for nothing, so its own time is counted: what else the machine does is not held against it.
"""
import asyncio
import json
import time

from agents import Agent, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.models.interface import Model
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

CHILDREN = 1_000
SAID = "x" * 200

set_tracing_disabled(True)


class Instant(Model):
    """Asks for so many children in its first answer, and for none in the next ones."""

    def __init__(self, children):
        self.children = children
        self.calls = 0

    async def get_response(self, *args, **kwargs):
        self.calls += 1
        text = ResponseOutputText(annotations=[], text=SAID, type="output_text")
        output = [
            ResponseOutputMessage(
                id=f"m{self.calls}", content=[text], role="assistant", status="completed", type="message"
            )
        ]
        for number in range(self.children if self.calls == 1 else 0):
            output.append(
                ResponseFunctionToolCall(
                    call_id=f"c{number}", name="child", arguments='{"input":"Do it."}', type="function_call"
                )
            )
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError


async def per_child(children):
    below, above = Instant(0), Instant(children)
    child = Agent(name="child", instructions="Do it.", model=below)
    tool = child.as_tool(tool_name="child", tool_description="Does it.")
    root = Agent(name="root", instructions="Do it.", model=above, tools=[tool])
    start = time.process_time_ns()
    ended = await Runner.run(root, "Grow.")
    took = time.process_time_ns() - start
    assert (ended.final_output, below.calls, above.calls) == (SAID, children, 2)
    results = [item for item in ended.to_input_list() if item.get("type") == "function_call_output"]
    assert [result["output"] for result in results] == [SAID] * children
    return took / children


asyncio.run(per_child(5))
print(json.dumps({"child": min(asyncio.run(per_child(CHILDREN)) for _ in range(2))}))
