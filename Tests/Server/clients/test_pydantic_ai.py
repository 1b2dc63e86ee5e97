"""pydantic-ai over chat completions and over Responses."""
from typing import Literal

import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel, Field
from pydantic_ai import Agent, ModelRequest, NativeOutput, PromptedOutput, ToolOutput, UnexpectedModelBehavior
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelResponse, ToolCallPart, ToolReturnPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition

from support import ADD, KEY, MODEL, NO_MODEL, TIMEOUT, URL, WEATHER, check_json


class Verdict(BaseModel):
    """A verdict."""
    colour: Literal["red", "green"]
    score: int = Field(ge=0, le=9)


class Refusal(BaseModel):
    """Says why there is no verdict."""
    reason: Literal["cost", "time"]


def build(kind, name=MODEL):
    client = AsyncOpenAI(base_url=URL, api_key=KEY, max_retries=0, timeout=TIMEOUT)
    cls = OpenAIChatModel if kind == "chat" else OpenAIResponsesModel
    return cls(name, provider=OpenAIProvider(openai_client=client), settings={"temperature": 0, "max_tokens": 64})


# Built anew for each test: the HTTP client belongs to the test's event loop.
@pytest.fixture(params=["chat", "responses"])
def model(request):
    return build(request.param)


def check_usage(usage):
    assert usage.input_tokens > 0 and usage.output_tokens > 0


async def test_text(model):
    result = await Agent(model, instructions="Be brief.").run("Say hello.")
    assert isinstance(result.output, str) and result.output
    check_usage(result.usage() if callable(result.usage) else result.usage)


async def test_history(model):
    agent = Agent(model)
    first = await agent.run("Say hello.")
    second = await agent.run("Once more.", message_history=first.all_messages())
    assert len(second.all_messages()) == 4


async def test_stream_text(model):
    async with Agent(model).run_stream("Say hello.") as result:
        parts = [p async for p in result.stream_text(delta=True, debounce_by=None)]
        assert "".join(parts) == await result.get_output()


@pytest.mark.parametrize("output", [
    NativeOutput(Verdict), NativeOutput(Verdict, strict=True), ToolOutput(Verdict), ToolOutput(Verdict, strict=True)],
    ids=["native", "native_strict", "tool", "tool_strict"])
async def test_output(model, output):
    # No retries: the first answer has to be valid.
    result = await Agent(model, output_type=output, retries=0).run("Judge.")
    assert isinstance(result.output, Verdict)


@pytest.mark.parametrize("output", [NativeOutput([Verdict, Refusal]), [ToolOutput(Verdict), ToolOutput(Refusal)]],
                         ids=["native", "tool"])
async def test_union_output(model, output):
    result = await Agent(model, output_type=output, retries=0).run("Judge.")
    assert isinstance(result.output, (Verdict, Refusal))


async def test_prompted_output(model):
    # Uses json_object: JSON is promised, the schema is not.
    try:
        result = await Agent(model, output_type=PromptedOutput(Verdict), retries=0).run("Judge.")
        assert isinstance(result.output, Verdict)
    except UnexpectedModelBehavior:
        pass


@pytest.mark.parametrize("output", [NativeOutput(Verdict), ToolOutput(Verdict)], ids=["native", "tool"])
async def test_stream_output(model, output):
    async with Agent(model, output_type=output, retries=0).run_stream("Judge.") as result:
        assert isinstance(await result.get_output(), Verdict)


TOOLS = [
    ToolDefinition(name="get_weather", description="Weather of a city.", parameters_json_schema=WEATHER),
    ToolDefinition(name="add", description="Adds two numbers.", parameters_json_schema=ADD, strict=True),
]
SCHEMAS = {"get_weather": WEATHER, "add": ADD}
# The model has to call: without this a small model may answer in words.
FORCED = ModelRequestParameters(function_tools=TOOLS, allow_text_output=False)
SETTINGS = {"temperature": 0, "max_tokens": 64, "parallel_tool_calls": False}


def check_call(response):
    (call,) = [p for p in response.parts if isinstance(p, ToolCallPart)]
    check_json(call.args_as_json_str(), SCHEMAS[call.tool_name])
    return call


@pytest.mark.quick
async def test_forced_tool_and_result(model):
    ask = ModelRequest.user_text_prompt("Weather in Rome?")
    response = await model_request(model, [ask], model_request_parameters=FORCED, model_settings=SETTINGS)
    call = check_call(response)
    back = ModelRequest(parts=[ToolReturnPart(tool_name=call.tool_name, content="21", tool_call_id=call.tool_call_id)])
    final = await model_request(
        model, [ask, response, back], model_settings={"temperature": 0, "max_tokens": 16, "tool_choice": "none"},
        model_request_parameters=ModelRequestParameters(function_tools=TOOLS))
    assert isinstance(final, ModelResponse)
    assert not [p for p in final.parts if isinstance(p, ToolCallPart)]


async def test_forced_tool_stream(model):
    async with model_request_stream(
        model, [ModelRequest.user_text_prompt("Weather in Rome?")], model_request_parameters=FORCED,
        model_settings=SETTINGS,
    ) as stream:
        async for _ in stream:
            pass
        check_call(stream.get())


async def test_named_tool(model):
    response = await model_request(
        model, [ModelRequest.user_text_prompt("Weather in Rome?")],
        model_request_parameters=ModelRequestParameters(function_tools=TOOLS),
        model_settings={**SETTINGS, "tool_choice": ["add"]})
    assert check_call(response).tool_name == "add"


async def test_agent_with_tool(model):
    agent = Agent(model, retries=1)
    seen = []

    @agent.tool_plain
    def colour_of(thing: Literal["grass", "blood"]) -> str:
        """Colour of a thing."""
        seen.append(thing)
        return "green" if thing == "grass" else "red"

    # Whether the tool is used is the model's choice; its arguments are not.
    try:
        await agent.run("Use colour_of for grass.")
    except UnexpectedModelBehavior:
        # A text-only run never ends here; a cut call may.
        pass
    assert set(seen) <= {"grass", "blood"}


@pytest.mark.parametrize("kind", ["chat", "responses"])
async def test_unknown_model(kind):
    with pytest.raises(ModelHTTPError) as e:
        await Agent(build(kind, NO_MODEL)).run("Hi")
    assert e.value.status_code == 404
