"""The application: the routes of a server of runs, in front of them the guard."""

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, PlainTextResponse
from starlette.exceptions import HTTPException

from wonderland.core import WonderlandError
from wonderland.ship.predictor import Predictor
from wonderland.ship.serving import openai, openapi, page
from wonderland.ship.serving.batching import Overloaded
from wonderland.ship.serving.guard import Guard, Receive, Refused, Scope, Send, error_body, refusal_of
from wonderland.ship.serving.limits import Limits
from wonderland.ship.serving.metrics import Metrics
from wonderland.ship.serving.predict import Predict
from wonderland.version import __version__

PUBLIC = ("/health",)
ROUTES = (
    "/",
    "/health",
    "/metrics",
    "/openapi.json",
    "/v1/runs",
    "/v1/models",
    "/v1/completions",
    "/v1/chat/completions",
)


def route_of_run(name: str) -> str:
    """The path of the route that predicts with a run."""
    return f"/v1/runs/{name}/predict"


def routes(names: Sequence[str]) -> list[str]:
    """The routes that are counted one by one."""
    return [*ROUTES, *map(route_of_run, names)]


def check_names(predictors: Sequence[Predictor]) -> None:
    """Refuse two runs of one name."""
    names = [predictor.name for predictor in predictors]
    for name in names:
        if names.count(name) > 1:
            raise WonderlandError(f"Two runs are called {name!r}: rename the folder of one of them.")


class Service:
    """Routes that predict are found here, without a way through the framework; it has all others."""

    def __init__(self, predictors: Sequence[Predictor], limits: Limits, metrics: Metrics):
        check_names(predictors)
        pool = ThreadPoolExecutor(1, "predict")  # one: models compute on threads of their own, and encoders keep notes
        self.predictors = {predictor.name: predictor for predictor in predictors}
        self.predict = {name: Predict(p, pool, limits, metrics) for name, p in self.predictors.items()}
        self.direct = {route_of_run(name): route for name, route in self.predict.items()}
        self.app = application(self.predictors, self.predict, limits, metrics)
        if len(predictors) == 1:
            self.direct["/predict"] = next(iter(self.predict.values()))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self.direct.get(scope["path"])
        if route is None:
            await self.app(scope, receive, send)  # pyright: ignore
        elif scope["method"] != "POST":
            raise Refused(405, "Predictions are asked for with POST.", [(b"allow", b"POST")])
        else:
            await route(scope, receive, send)


def application(
    predictors: dict[str, Predictor], predict: dict[str, Predict], limits: Limits, metrics: Metrics
) -> FastAPI:
    """All routes but those that predict."""
    app = FastAPI(title="Wonderland", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)
    about = {name: predictor.about() for name, predictor in predictors.items()}

    @app.get("/", include_in_schema=False)
    def overview() -> Response:
        return HTMLResponse(page.overview(list(about.values())), headers={"content-security-policy": page.POLICY})

    @app.get("/openapi.json", include_in_schema=False)
    def description() -> dict[str, Any]:
        return openapi.describe(app, predictors, predict, limits)

    @app.get("/health", summary="Whether the server is ready")
    def health() -> dict[str, Any]:
        return {"status": "ready", "runs": len(predictors), "wonderland": __version__}

    @app.get("/metrics", summary="Counters in the text format of Prometheus", response_class=PlainTextResponse)
    def counters() -> Response:
        return PlainTextResponse(metrics.text(), media_type="text/plain; version=0.0.4")

    @app.get("/v1/runs", summary="The runs, their fields, classes and metrics")
    def runs() -> dict[str, Any]:
        return {"runs": list(about.values())}

    @app.get("/v1/runs/{name}", summary="One run", responses=openapi.errors(404, 422))
    def run(name: str) -> dict[str, Any]:
        if name not in about:
            raise Refused(404, f"There is no run {name[:80]!r}. Known are {', '.join(about)}.")
        return about[name]

    openai.add_routes(app, predictors, limits, metrics)
    add_errors(app)
    return app


def add_errors(app: FastAPI) -> None:
    """Every error as the guard writes it, where the framework would write its own."""

    def refused(request: Request, error: Exception) -> Response:
        refusal = refusal_of(error)
        headers = {name.decode(): value.decode() for name, value in refusal.headers}
        return Response(error_body(refusal.status, refusal.sentence), refusal.status, headers, "application/json")

    for kind in (Refused, WonderlandError, Overloaded, TimeoutError, Exception):
        app.add_exception_handler(kind, refused)

    @app.exception_handler(HTTPException)
    def http(request: Request, error: HTTPException) -> Response:
        sentences = {404: f"There is nothing at {request.url.path[:200]!r}. GET / lists what there is.",
                     400: "The body is not JSON in UTF-8.",
                     405: f"{request.method} is not possible at {request.url.path[:200]!r}."}  # fmt: skip
        sentence = sentences.get(error.status_code, f"{error.detail}.")
        headers = dict(error.headers or {})
        return Response(error_body(error.status_code, sentence), error.status_code, headers, "application/json")

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"][1:])
        if first["type"] == "json_invalid":
            sentence = "The body is not JSON."
        elif first["type"] == "missing":
            sentence = f"The request lacks {place!r}." if place else "The request has no body: send JSON."
        else:
            sentence = f"{place or 'The body'}: {first['msg'].removeprefix('Value error, ')}."
        return Response(error_body(422, sentence), 422, media_type="application/json")


def guarded(
    predictors: Sequence[Predictor],
    limits: Limits,
    metrics: Metrics,
    *,
    keys: list[bytes] | None = None,
    names: Collection[str] | None = None,
) -> Guard:
    """The whole application."""
    known = set(metrics.routes)
    aliases = {"/predict": route_of_run(predictors[0].name)} if len(predictors) == 1 else {}

    def route_of(path: str) -> str:
        path = aliases.get(path, path)
        return path if path in known else "other"

    service = Service(predictors, limits, metrics)
    return Guard(service, limits=limits, metrics=metrics, keys=keys, names=names, public=PUBLIC, route_of=route_of)


def address(host: str, port: int) -> str:
    """Where a browser finds a server that listens here."""
    shown = "127.0.0.1" if host in ("0.0.0.0", "") else host
    return f"http://[{shown}]:{port}/" if ":" in shown else f"http://{quote(shown)}:{port}/"
