"""Routes that clients of OpenAI's interface use: models, completions and chat, whole or streamed."""

import json
import secrets
import time
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Literal

from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from wonderland.core import WonderlandError, nearest
from wonderland.ship.predictor import Predictor
from wonderland.ship.serving import openapi
from wonderland.ship.serving.guard import Refused, error_body, refusal_of
from wonderland.ship.serving.inputs import MOST_CHARACTERS
from wonderland.ship.serving.limits import Limits
from wonderland.ship.serving.metrics import Metrics
from wonderland.ship.serving.writer import Text, TextWriter

MOST_TOKENS = 1 << 20
ABILITY = "chat"  # of runs that write texts
Content = Annotated[str, Field(max_length=MOST_CHARACTERS)]
Short = Annotated[str, Field(min_length=1, max_length=200)]


Stop = Annotated[
    list[Short],
    Field(max_length=4),
    BeforeValidator(
        lambda value: [value] if isinstance(value, str) else value,
        json_schema_input_type=Short | Annotated[list[Short], Field(max_length=4)],
    ),
]


class StreamOptions(BaseModel):
    include_usage: bool = False


class JsonSchema(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    name: Short = "schema"
    shape: dict[str, Any] = Field(alias="schema")
    strict: bool | None = None


class ResponseFormat(BaseModel):
    type: Literal["text", "json_schema"]
    json_schema: JsonSchema | None = None


class Asked(BaseModel):
    """What completions and chat share. Parameters of other values than these are refused, not ignored."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    model: Short
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    n: int | None = Field(None, ge=1, le=8)
    stop: Stop | None = None
    seed: int | None = Field(None, ge=-(2**53), le=2**53)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: Short | None = None
    frequency_penalty: Literal[0] | None = None
    presence_penalty: Literal[0] | None = None
    logit_bias: Annotated[dict[str, float], Field(max_length=0)] | None = None

    def options(self) -> dict[str, Any]:
        """The options of generation."""
        temperature = 1.0 if self.temperature is None else self.temperature
        options: dict[str, Any] = {"temperature": temperature, "stop": self.stop or []}
        if self.top_p is not None:
            options["top_p"] = self.top_p
        return options


class Completion(Asked):
    """A request for completions."""

    prompt: Content | Annotated[list[Content], Field(min_length=1, max_length=16)] = ""
    max_tokens: int | None = Field(None, ge=1, le=MOST_TOKENS)
    echo: bool | None = None
    logprobs: None = None
    suffix: None = None
    best_of: Literal[1] | None = None


class Part(BaseModel):
    type: Literal["text"]
    text: Content


class Message(BaseModel):
    role: Literal["system", "developer", "user", "assistant"]
    content: Content | Annotated[list[Part], Field(min_length=1, max_length=64)]
    name: Short | None = None

    def text(self) -> str:
        """The text of the message."""
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)


class Chat(Asked):
    """A request for chat completions."""

    messages: Annotated[list[Message], Field(min_length=1, max_length=512)]
    max_tokens: int | None = Field(None, ge=1, le=MOST_TOKENS)
    max_completion_tokens: int | None = Field(None, ge=1, le=MOST_TOKENS)
    response_format: ResponseFormat | None = None
    logprobs: Literal[False] | None = None


def add_routes(app: FastAPI, predictors: dict[str, Predictor], limits: Limits, metrics: Metrics) -> None:
    """Add the routes; runs that write no texts are not among the models."""
    abilities = {
        name: predictor.run.ability(ABILITY)
        for name, predictor in predictors.items()
        if ABILITY in predictor.run.abilities
    }
    writer = TextWriter(limits, metrics)
    created = {name: int((predictors[name].run.folder / "trust.json").stat().st_mtime) for name in abilities}

    def model(name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": created[name], "owned_by": "wonderland"}

    def ability_of(name: str) -> Any:
        if name not in abilities:
            known = f"Known are {', '.join(abilities)}." if abilities else "No run of this server writes texts."
            raise Refused(404, f"There is no model {name[:80]!r}.{nearest(name, abilities)} {known}")
        return abilities[name]

    @app.get("/v1/models", summary="The runs that write texts")
    def models() -> dict[str, Any]:
        return {"object": "list", "data": [model(name) for name in abilities]}

    @app.get("/v1/models/{name}", summary="One of them", responses=openapi.errors(404, 422))
    def one_model(name: str) -> dict[str, Any]:
        ability_of(name)
        return model(name)

    events = {"text/event-stream": {"schema": {"type": "string"}}}
    responses = openapi.errors(400, 404, 413, 422, 503)
    responses[200] = {"description": "The text, or its pieces where `stream` is true", "content": events}

    @app.post("/v1/completions", summary="Continue a text", responses=responses)
    async def completions(asked: Completion) -> Response:
        ability = ability_of(asked.model)
        count = bounded(asked.max_tokens or 16, limits)
        prompts = [asked.prompt] if isinstance(asked.prompt, str) else asked.prompt
        jobs = [(fitting(ability, prompt, count), prompt if asked.echo else "") for prompt in prompts]
        form = Form("cmpl", "text_completion", asked.model, lambda text: {"text": text}, lambda text: {"text": text})
        return await answer(writer, ability, asked, jobs, count, asked.options(), form)

    @app.post("/v1/chat/completions", summary="Answer a conversation", responses=responses)
    async def chat(asked: Chat) -> Response:
        ability = ability_of(asked.model)
        count = bounded(asked.max_completion_tokens or asked.max_tokens or 120, limits)
        text = "".join(f"{message.text()}\n" for message in asked.messages)
        options = asked.options()
        if asked.response_format is not None and asked.response_format.type == "json_schema":
            if asked.response_format.json_schema is None:
                raise WonderlandError("response_format: a json_schema is missing.")
            options["schema"] = asked.response_format.json_schema.shape
        count = min(count, ability.room(1) or count)
        form = Form("chatcmpl", "chat.completion", asked.model, message_of, lambda text: {"delta": {"content": text}})
        return await answer(writer, ability, asked, [(ability.left_context(text, count), "")], count, options, form)


def message_of(text: str) -> dict[str, Any]:
    """A choice of a chat completion."""
    return {"message": {"role": "assistant", "content": text, "refusal": None}}


def bounded(count: int, limits: Limits) -> int:
    """A number of tokens, if the server allows it."""
    if count > limits.tokens:
        raise WonderlandError(f"max_tokens is at most {limits.tokens:,} on this server, not {count:,}.")
    return count


def fitting(ability: Any, prompt: str, count: int) -> str:
    """A prompt that leaves room for the tokens asked for."""
    room = ability.room(count)
    given = len(ability.read(prompt))
    if room is not None and given > room:
        most = ability.room(1)
        raise WonderlandError(
            f"The prompt has {given:,} tokens and {count:,} are asked for; this model has room for {most:,}. "
            "Shorten the prompt, or lower max_tokens."
        )
    return prompt


class Form:
    """The shape of answers: `whole` and `piece` are choices of whole and of streamed texts."""

    def __init__(self, prefix: str, kind: str, model: str, whole: Callable[[str], Any], piece: Callable[[str], Any]):
        self.id, self.kind, self.model = f"{prefix}-{secrets.token_hex(12)}", kind, model
        self.whole, self.piece, self.created = whole, piece, int(time.time())

    @property
    def is_chat(self) -> bool:
        """Whether a conversation is answered."""
        return self.kind.startswith("chat")

    def head(self, *, streamed: bool = False) -> dict[str, Any]:
        """What every answer begins with."""
        kind = f"{self.kind}.chunk" if streamed and self.is_chat else self.kind
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}

    def event(self, **content: Any) -> bytes:
        """One event of a stream."""
        return b"data: " + json.dumps(self.head(streamed=True) | content).encode() + b"\n\n"


async def answer(
    writer: TextWriter,
    ability: Any,
    asked: Asked,
    prompts: list[tuple[str, str]],
    count: int,
    options: dict[str, Any],
    form: Form,
) -> Response:
    """Write n texts for each prompt; `prompts` are pairs of what the model reads and what is repeated before its text."""
    seed = asked.seed if asked.seed is not None else secrets.randbelow(2**31)
    jobs = [(prompt, echo, seed + i) for prompt, echo in prompts for i in range(asked.n or 1)]
    given = sum(len(ability.read(prompt)) for prompt, _ in prompts)
    if asked.stream:
        events = stream(writer, ability, asked, jobs, count, options, form, given)
        first = await anext(events)  # what is wrong with the request is found before the response begins
        return StreamingResponse(chained(first, events), media_type="text/event-stream")
    choices, total = [], 0
    for index, (prompt, echo, own_seed) in enumerate(jobs):
        text = Text()
        async for _ in writer.write(ability, prompt, count, text, seed=own_seed, **options):
            pass
        total += text.tokens
        whole = form.whole(echo + "".join(text.pieces))
        choices.append({"index": index, **whole, "logprobs": None, "finish_reason": text.finish})
    return JSONResponse(form.head() | {"choices": choices, "usage": usage(given, total)})


async def stream(
    writer: TextWriter,
    ability: Any,
    asked: Asked,
    jobs: list[tuple[str, str, int]],
    count: int,
    options: dict[str, Any],
    form: Form,
    given: int,
) -> AsyncIterator[bytes]:
    """The events of a stream: pieces of each text, why it ended, what was used, and the end."""
    total = 0
    for index, (prompt, echo, seed) in enumerate(jobs):
        text, begun = Text(), False
        async for piece in writer.write(ability, prompt, count, text, seed=seed, **options):
            if not begun:
                start = {"delta": {"role": "assistant", "content": ""}} if form.is_chat else form.piece(echo)
                yield form.event(choices=[{"index": index, **start, "logprobs": None, "finish_reason": None}])
                begun = True
            yield form.event(choices=[{"index": index, **form.piece(piece), "logprobs": None, "finish_reason": None}])
        total += text.tokens
        last = {"delta": {}} if form.is_chat else form.piece("" if begun else echo)
        yield form.event(choices=[{"index": index, **last, "logprobs": None, "finish_reason": text.finish}])
    if asked.stream_options is not None and asked.stream_options.include_usage:
        yield form.event(choices=[], usage=usage(given, total))
    yield b"data: [DONE]\n\n"


async def chained(first: bytes, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A stream whose first event is there already; a fault on the way is an event as well."""
    yield first
    try:
        async for event in events:
            yield event
    except Exception as error:
        refusal = refusal_of(error)
        yield b"data: " + error_body(refusal.status, refusal.sentence) + b"\n\n"


def usage(given: int, written: int) -> dict[str, int]:
    """Tokens read and written."""
    return {"prompt_tokens": given, "completion_tokens": written, "total_tokens": given + written}
