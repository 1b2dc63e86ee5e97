import anthropic
import httpx
import ollama
import openai
import pytest

import support


@pytest.fixture(scope="session", autouse=True)
def server():
    """Stops at once when nothing listens, instead of one connection error per test."""
    try:
        httpx.get(support.URL + "/models", headers=support.HEADERS, timeout=30)
    except httpx.HTTPError as error:
        pytest.exit(f"no server at {support.URL}: {error!r}", returncode=3)


# No retries anywhere: a 5xx must show, not be repaired by the client.
@pytest.fixture(scope="session")
def client():
    with openai.OpenAI(
        base_url=support.URL, api_key=support.KEY, max_retries=0, timeout=support.TIMEOUT
    ) as c:
        yield c


@pytest.fixture
async def aclient():
    async with openai.AsyncOpenAI(
        base_url=support.URL, api_key=support.KEY, max_retries=0, timeout=support.TIMEOUT
    ) as c:
        yield c


@pytest.fixture(scope="session")
def claude():
    with anthropic.Anthropic(
        base_url=support.ROOT, api_key=support.KEY, max_retries=0, timeout=support.TIMEOUT
    ) as c:
        yield c


@pytest.fixture
async def aclaude():
    async with anthropic.AsyncAnthropic(
        base_url=support.ROOT, api_key=support.KEY, max_retries=0, timeout=support.TIMEOUT
    ) as c:
        yield c


@pytest.fixture(scope="session")
def oll():
    return ollama.Client(host=support.ROOT, headers=support.HEADERS, timeout=support.TIMEOUT)


@pytest.fixture
def aoll():
    return ollama.AsyncClient(host=support.ROOT, headers=support.HEADERS, timeout=support.TIMEOUT)
