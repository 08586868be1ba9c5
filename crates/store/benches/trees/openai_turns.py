"""Measures turns of the OpenAI Agents SDK in memory and prints one JSON object: nanoseconds per turn.

The model answers at once: for so many turns it asks for a tool that does nothing, then it is done.
"""
import asyncio
import json
import time

from agents import Agent, ModelResponse, RunConfig, Runner, Usage, function_tool
from agents.models.interface import Model
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

SAID = "x" * 200
FOUND = "y" * 200


class Instant(Model):
    def __init__(self, turns):
        self.turns = turns
        self.turn = 0

    async def get_response(self, *args, **kwargs):
        self.turn += 1
        text = ResponseOutputText(annotations=[], text=SAID, type="output_text")
        output = [
            ResponseOutputMessage(
                id=f"m{self.turn}", content=[text], role="assistant", status="completed", type="message"
            )
        ]
        if self.turn <= self.turns:
            call = f"c{self.turn}"
            output.append(ResponseFunctionToolCall(call_id=call, name="noop", arguments="{}", type="function_call"))
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError


@function_tool
def noop() -> str:
    """Does nothing."""
    return FOUND


async def per_turn(turns):
    agent = Agent(name="root", instructions="Do it.", model=Instant(turns), tools=[noop])
    start = time.perf_counter_ns()
    await Runner.run(agent, "Grow.", max_turns=turns + 2, run_config=RunConfig(tracing_disabled=True))
    return (time.perf_counter_ns() - start) / turns


asyncio.run(per_turn(5))
print(json.dumps({f"turn_{turns}": asyncio.run(per_turn(turns)) for turns in (100, 400)}))
