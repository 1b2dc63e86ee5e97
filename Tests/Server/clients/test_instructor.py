"""instructor over the openai client. No retries: the first answer has to be valid."""
from enum import Enum
from typing import Literal, Optional, Union

import instructor
import openai
import pytest
from instructor.core.exceptions import IncompleteOutputException, InstructorRetryException
from pydantic import BaseModel, Field

from support import KEY, MODEL, TIMEOUT, URL

ASK = [{"role": "user", "content": "Describe a red point at 1, 2."}]


class Colour(str, Enum):
    red = "red"
    green = "green"


class Point(BaseModel):
    """A coloured point."""
    x: int = Field(ge=0, le=9)
    y: int = Field(ge=0, le=9)
    colour: Colour


class Shape(BaseModel):
    name: Optional[Literal["line", "triangle"]]
    points: list[Point] = Field(min_length=1, max_length=2)


def make(mode, cls=openai.OpenAI):
    client = cls(base_url=URL, api_key=KEY, max_retries=0, timeout=TIMEOUT)
    return instructor.from_openai(client, mode=mode)


MODES = [
    pytest.param(instructor.Mode.TOOLS, id="TOOLS"),
    pytest.param(instructor.Mode.TOOLS_STRICT, id="TOOLS_STRICT"),
    pytest.param(instructor.Mode.JSON_SCHEMA, id="JSON_SCHEMA"),
]


def common(n=128):
    return dict(model=MODEL, messages=ASK, temperature=0, max_tokens=n, max_retries=0)


@pytest.mark.quick
def test_smallest():
    got = make(instructor.Mode.TOOLS).chat.completions.create(response_model=Point, **common(64))
    assert isinstance(got, Point)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("model", [Point, Shape])
def test_create(mode, model):
    assert isinstance(make(mode).chat.completions.create(response_model=model, **common()), model)


@pytest.mark.parametrize("mode", MODES[1:])
async def test_create_async(mode):
    client = make(mode, openai.AsyncOpenAI)
    assert isinstance(await client.chat.completions.create(response_model=Point, **common(64)), Point)


@pytest.mark.parametrize("mode", MODES)
def test_with_completion(mode):
    point, raw = make(mode).chat.completions.create_with_completion(response_model=Point, **common(64))
    assert isinstance(point, Point)
    assert raw.usage.total_tokens == raw.usage.prompt_tokens + raw.usage.completion_tokens


class Line(BaseModel):
    # Literals: instructor's partial models refuse an Enum's value in its strict validation.
    colour: Literal["red", "green"]
    width: int = Field(ge=0, le=9)
    dashes: list[Literal["long", "short"]] = Field(min_length=1, max_length=3)


@pytest.mark.parametrize("mode", MODES)
def test_partial(mode):
    seen = list(make(mode).chat.completions.create_partial(response_model=Line, **common()))
    assert len(seen) > 1
    # The last state is complete.
    Line.model_validate(seen[-1].model_dump())


@pytest.mark.parametrize("mode", MODES[1:])
async def test_partial_async(mode):
    client = make(mode, openai.AsyncOpenAI)
    seen = [s async for s in client.chat.completions.create_partial(response_model=Line, **common())]
    Line.model_validate(seen[-1].model_dump())


@pytest.mark.parametrize("mode", MODES)
def test_iterable(mode):
    # instructor wraps the model in an unbounded list, so the answer may be cut; each item is valid.
    for n, point in enumerate(make(mode).chat.completions.create_iterable(response_model=Point, **common(96))):
        assert isinstance(point, Point)
        if n == 3:
            break


class Yes(BaseModel):
    kind: Literal["yes"]
    sure: bool


class No(BaseModel):
    kind: Literal["no"]
    reason: Literal["cost", "time"]


class Answer(BaseModel):
    answer: Union[Yes, No]


@pytest.mark.parametrize("mode", MODES)
def test_union(mode):
    got = make(mode).chat.completions.create(response_model=Answer, **common(64))
    assert isinstance(got.answer, (Yes, No))


def test_literal_response_model():
    got = make(instructor.Mode.TOOLS).chat.completions.create(response_model=Literal["a", "b"], **common(48))
    assert got in ("a", "b")


def test_responses_tools():
    client = make(instructor.Mode.RESPONSES_TOOLS)
    got = client.responses.create(
        model=MODEL, input="A red point at 1, 2.", response_model=Point, temperature=0, max_output_tokens=64,
        max_retries=0)
    assert isinstance(got, Point)


def test_json_mode():
    # Only JSON is promised here, not the schema; a failed validation is the model's.
    try:
        got = make(instructor.Mode.JSON).chat.completions.create(response_model=Point, **common(96))
        assert isinstance(got, Point)
    except InstructorRetryException as e:
        assert e.last_completion.choices[0].finish_reason in ("stop", "length")
    except IncompleteOutputException:
        pass
