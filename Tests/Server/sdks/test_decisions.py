"""Decisions through the packages of OpenAI and TypeSafe, unchanged."""
import os

import openai
import pytest
import typesafe_sdk
from typesafe_sdk import Choice, Noul, Score, TypeSafeClient

URL = os.environ["FM_SERVER_URL"].rstrip("/")
ROOT = URL.removesuffix("/v1")
MODEL = os.environ.get("FM_SERVER_MODEL", "default")
MAIL = "I ordered a kettle two weeks ago and it arrived broken. I sent it back, but I still wait for my money. Regards, Paul"


@pytest.fixture
def openai_client():
    return openai.OpenAI(base_url=URL, api_key="unused", timeout=180, max_retries=0)


def system_one(**options):
    return TypeSafeClient(base_url=ROOT, api_key="unused", timeout=180, model=MODEL, **options)


def test_all_kinds(openai_client):
    decision = openai_client.decisions.create(
        model=MODEL, input=MAIL,
        questions=[
            {"type": "predicate", "name": "refund", "instructions": "The writer wants money back."},
            {"type": "choice", "instructions": "Which team answers?",
             "choices": [{"value": "billing", "description": "payments"}, {"value": "sales"}, {"value": True}, {"value": "true"}]},
            {"type": "score", "instructions": "How urgent is it?", "levels": [{"label": "low"}, {"label": "high"}]},
        ])
    predicate, choice, score = decision.answers
    assert (predicate.type, predicate.name) == ("predicate", "refund") and 0 <= predicate.probability <= 1
    assert [item.value for item in choice.probabilities] == ["billing", "sales", True, "true"] and choice.name is None
    assert abs(sum(item.probability for item in choice.probabilities) - 1) < 1e-9
    assert choice.choice == max(choice.probabilities, key=lambda item: item.probability).value
    assert [(item.value, item.label) for item in score.probabilities] == [(0, "low"), (1, "high")]
    assert abs(score.score - score.probabilities[1].probability) < 1e-9
    assert decision.usage.total_tokens == decision.usage.input_tokens > 0 and decision.usage.output_tokens == 0


def test_a_conversation_is_the_state(openai_client):
    decision = openai_client.decisions.create(
        model=MODEL,
        input=[
            {"role": "developer", "content": "You judge messages."},
            {"role": "user", "content": [{"type": "input_text", "text": "Where is my parcel?"}]},
            {"role": "assistant", "content": [{"type": "output_text", "text": "It comes tomorrow.", "annotations": []}]},
            {"role": "user", "content": "Thank you!"},
        ],
        questions=[{"type": "predicate", "instructions": "The user is content."}])
    assert 0 <= decision.answers[0].probability <= 1


def test_alone_and_together(openai_client):
    questions = [{"type": "predicate", "instructions": text} for text in ("It is about food.", "It is about a kettle.", "It is long.")]
    together = openai_client.decisions.create(model=MODEL, input=MAIL, questions=questions).answers
    alone = [openai_client.decisions.create(model=MODEL, input=MAIL, questions=[question]).answers[0] for question in questions]
    assert [answer.probability for answer in together] == [answer.probability for answer in alone]


@pytest.mark.parametrize("body, place", [
    ({"input": MAIL, "questions": []}, "questions"),
    ({"input": MAIL, "questions": [{"type": "choice", "instructions": "x", "choices": [{"value": "a"}, {"value": "A "}]}]}, "questions"),
    ({"input": MAIL, "questions": [{"type": "box", "instructions": "x"}]}, "questions[0].type"),
    ({"input": [], "questions": [{"type": "predicate", "instructions": "x"}]}, "input"),
    ({"input": MAIL, "questions": [{"type": "predicate", "instructions": "x", "extra": 1}]}, "questions[0].extra"),
])
def test_wrong_requests_say_where(openai_client, body, place):
    with pytest.raises(openai.BadRequestError) as error:
        openai_client.decisions.create(model=MODEL, **body)
    assert error.value.param and error.value.param.startswith(place)


def test_system_one():
    criteria = {"billing": "payments", "zoo": None, "sales": {"offers": ["prices"]}}
    levels = ["calm", {"mood": "angry"}]
    with system_one() as client:
        reply = client.system_one(
            {"mail": MAIL},
            {"z": Noul(instructions="Does the writer want money back?"), "team": Choice(instructions="Who answers?", criteria=criteria),
             "a": Score(instructions="How angry is the writer?", criteria=levels)})
    assert list(reply.answers) == ["z", "team", "a"]
    assert 0 <= reply.answers["z"].noul <= 1
    assert list(reply.answers["team"].probabilities) == list(criteria)
    assert list(reply.answers["a"].legend.values()) == levels
    assert abs(sum(reply.answers["a"].probabilities.values()) - 1) < 1e-9


def test_system_one_compressed():
    """Bodies of 1,024 bytes and more are compressed where the client's Python can do it."""
    with system_one(compression="zstd") as client:
        reply = client.system_one(MAIL * 30, {"q": Noul(instructions="Is it about a kettle?")})
    assert 0 <= reply.answers["q"].noul <= 1


def test_system_one_errors():
    with system_one() as client:
        with pytest.raises(typesafe_sdk.TypeSafeUnprocessableEntityError) as error:
            client.system_one(MAIL, {"q": Choice(instructions="x", criteria={"a": None, " A": None})})
        assert "same" in str(error.value)
        assert [model.name for model in client.models.list().models]
