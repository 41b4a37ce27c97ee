"""The official client of OpenAI's interface works with a run that writes."""

import asyncio
import sys
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import openai
import pytest

import wonderland
from tests.ship.serving.application import application, ask, predictors
from wonderland.ship.predictor import Predictor


@cache
def novel() -> wonderland.Run:
    """A language model of a short text that repeats itself, with the characters of JSON in it."""
    folder = Path(mkdtemp(prefix="wonderland-novel-"))
    (folder / "novel.txt").write_text('The cat sat on the mat. "Yes": {true, false} [1, 2] said the dog.\n' * 200)
    return wonderland.fit(
        folder / "novel.txt", kind="corpus", out=folder / "run", steps=20, context=64, model="Decoder(dim=32, depth=1)"
    )


@pytest.fixture(scope="module")
def app():
    return application(Predictor(novel(), "novel"), predictors()[0])


def talk(app, conversation):
    """Run a conversation of the asynchronous client with an application."""

    async def run():
        http = sys.modules[
            openai.DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0]
        ]  # httpx, or what follows it
        own = openai.DefaultAsyncHttpxClient(transport=http.ASGITransport(app=app))
        async with openai.AsyncOpenAI(
            base_url="http://localhost/v1", api_key="none", http_client=own, max_retries=0
        ) as client:
            return await conversation(client)

    return asyncio.run(run())


def test_models_are_the_runs_that_write(app):
    async def conversation(client):
        return [model.id async for model in client.models.list()], (await client.models.retrieve("novel")).owned_by

    assert talk(app, conversation) == (["novel"], "wonderland")


def test_completions_are_those_of_generate_whole_and_streamed(app):
    expected = novel().ability("generate")("The cat", 12, temperature=0.0)

    async def conversation(client):
        asked = {"model": "novel", "prompt": "The cat", "max_tokens": 12, "temperature": 0}
        whole = await client.completions.create(**asked, echo=True)
        pieces = await client.completions.create(**asked, stream=True, stream_options={"include_usage": True})
        return whole, [piece async for piece in pieces]

    whole, pieces = talk(app, conversation)
    assert whole.choices[0].text == "The cat" + expected
    assert whole.choices[0].finish_reason == "length"
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (7, 12)
    assert "".join(piece.choices[0].text for piece in pieces if piece.choices) == expected
    assert pieces[-2].choices[0].finish_reason == "length"
    assert pieces[-1].usage.total_tokens == 19


def test_chat_streams_follows_seeds_stops_and_schemas(app):
    async def conversation(client):
        messages = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        ]
        asked = {"model": "novel", "messages": messages, "max_completion_tokens": 15}
        whole = await client.chat.completions.create(**asked, seed=3)
        again = await client.chat.completions.create(**asked, seed=3)
        pieces = await client.chat.completions.create(**asked, seed=3, stream=True)
        pieces = [piece async for piece in pieces]
        shape = {"name": "n", "schema": {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 1}}
        formed = await client.chat.completions.create(
            **asked, response_format={"type": "json_schema", "json_schema": shape}
        )
        stopped = await client.chat.completions.create(**asked, temperature=0, stop=["a", "e", "t", " "], n=2)
        return whole, again, pieces, formed, stopped

    whole, again, pieces, formed, stopped = talk(app, conversation)
    text = whole.choices[0].message.content
    assert text == again.choices[0].message.content
    assert pieces[0].choices[0].delta.role == "assistant"
    assert "".join(piece.choices[0].delta.content or "" for piece in pieces) == text
    assert formed.choices[0].message.content.replace(" ", "") in ("[true]", "[false]")
    assert formed.choices[0].finish_reason == "stop"
    assert len(stopped.choices) == 2
    assert stopped.choices[0].finish_reason == "stop"


def test_wrong_requests_are_the_errors_that_the_client_knows(app):
    async def conversation(client):
        with pytest.raises(openai.NotFoundError) as missing:
            await client.completions.create(model="novell", prompt="a")
        with pytest.raises(openai.UnprocessableEntityError) as unknown:
            await client.chat.completions.create(model="novel", messages=[], extra_body={"tools": []})
        return missing.value.body["message"], unknown.value.status_code

    assert talk(app, conversation) == ("There is no model 'novell'. Did you mean 'novel'? Known are novel.", 422)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"max_tokens": 5000}, "max_tokens is at most 4,096 on this server, not 5,000."),
        ({"best": 1}, "best: Extra inputs are not permitted."),
        ({"stop": list("abcde")}, "stop: List should have at most 4 items after validation, not 5."),
        ({"temperature": 3}, "temperature: Input should be less than or equal to 2."),
        ({"frequency_penalty": 1}, "frequency_penalty: Input should be 0."),
    ],
)
def test_what_is_not_possible_is_refused_in_a_sentence(app, changes, sentence):
    status, _, body = ask(app, ("POST", "/v1/completions", {"model": "novel", "prompt": "a"} | changes))
    assert (status, body["error"]["message"]) == (422, sentence)


def test_a_server_without_such_runs_says_so():
    app = application(predictors()[0])
    status, _, body = ask(app, ("POST", "/v1/completions", {"model": "mixed", "prompt": "a"}))
    assert (status, body["error"]["message"]) == (404, "There is no model 'mixed'. No run of this server writes texts.")
