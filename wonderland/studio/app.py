"""The application of the studio: the page, what it reads of runs, and models that it tries."""

import asyncio
import shlex
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from wonderland.core import MIB, WonderlandError, inside, read_bytes, read_json
from wonderland.road.facts import refit_command
from wonderland.ship.predictor import Predictor
from wonderland.ship.run import load
from wonderland.ship.serving.app import add_errors
from wonderland.ship.serving.guard import Guard, Refused, replay
from wonderland.ship.serving.inputs import MOST_CHARACTERS
from wonderland.ship.serving.limits import Limits
from wonderland.ship.serving.metrics import Metrics
from wonderland.ship.serving.predict import Predict
from wonderland.ship.serving.writer import Text, TextWriter
from wonderland.studio.catalog import Catalog, curves, details, lower_is_better
from wonderland.version import __version__

STATIC = Path(__file__).parent / "static"
KINDS = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
REPORT_POLICY = "sandbox; default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
LOADED = 4  # models in memory


class Asked(BaseModel):
    """A request for a text."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    prompt: Annotated[str, Field(max_length=MOST_CHARACTERS)] = ""
    count: int = Field(200, ge=1, le=2000)
    temperature: float = Field(0.8, ge=0, le=2)
    seed: int = Field(0, ge=0, le=2**53)


class Models:
    """Runs that are tried, loaded when they are first asked for; the least recently used leave."""

    def __init__(self, catalog: Catalog, limits: Limits, metrics: Metrics):
        self.catalog, self.limits, self.metrics = catalog, limits, metrics
        self.pool = ThreadPoolExecutor(1, "predict")
        self.routes: OrderedDict[str, tuple[str, Predict]] = OrderedDict()
        self.loading = asyncio.Lock()

    async def route(self, name: str) -> Predict:
        """The predictions of a run, as the server gives them."""
        folder = self.catalog.folder(name)
        if not (folder / "trust.json").exists():
            raise WonderlandError(f"The run {name!r} is not finished: it can be tried when it is.")
        stamp = str((folder / "trust.json").stat().st_mtime_ns)
        async with self.loading:
            kept = self.routes.pop(name, None)
            if kept is None or kept[0] != stamp:
                kept = stamp, await asyncio.to_thread(self._load, folder, name)
            self.routes[name] = kept
            while len(self.routes) > LOADED:
                self.routes.popitem(last=False)
        return kept[1]

    def _load(self, folder: Path, name: str) -> Predict:
        return Predict(Predictor(load(folder), name), self.pool, self.limits, self.metrics)


def application(root: str | Path, limits: Limits, metrics: Metrics) -> FastAPI:
    """All routes."""
    app = FastAPI(title="Wonderland studio", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)
    catalog = Catalog(root)
    models, writer = Models(catalog, limits, metrics), TextWriter(limits, metrics)

    @app.get("/api/runs")
    def runs() -> dict[str, Any]:
        listed = catalog.runs()
        names = sorted({metric for run in listed for metric in run["metrics"]})
        lower = [name for name in names if lower_is_better(name)]
        return {"root": str(catalog.root), "runs": listed, "metrics": names, "lower": lower, "version": __version__}

    @app.get("/api/run/{name:path}/curves")
    def run_curves(name: str) -> dict[str, Any]:
        return {"summary": catalog.summary(name), "curves": curves(catalog.folder(name))}

    @app.get("/api/run/{name:path}/report")
    def report(name: str) -> Response:
        content = read_bytes(inside(catalog.folder(name), "report.html"), 256 * MIB)
        return Response(content, media_type="text/html", headers={"content-security-policy": REPORT_POLICY})

    @app.get("/api/run/{name:path}/details")
    def run_details(name: str) -> dict[str, Any]:
        folder = catalog.folder(name)
        return details(name, folder) | {"summary": catalog.summary(name), "commands": commands(folder)}

    @app.get("/api/run/{name:path}/schema")
    async def schema(name: str) -> dict[str, Any]:
        return (await models.route(name)).predictor.about()

    @app.post("/api/run/{name:path}/predict")
    async def predict(name: str, request: Request) -> Response:
        return Passed(await models.route(name), request.scope.get("content", b""))

    @app.post("/api/run/{name:path}/write")
    async def write(name: str, asked: Asked) -> Response:
        run = (await models.route(name)).predictor.run
        if "chat" not in run.abilities:
            raise WonderlandError(f"The run {name!r} does not write texts.")
        ability = run.ability("chat")
        count = min(asked.count, ability.room(1) or asked.count)
        prompt = ability.left_context(asked.prompt, count)
        pieces = writer.write(ability, prompt, count, Text(), temperature=asked.temperature, seed=asked.seed)
        first = await anext(pieces, "")

        async def content():
            yield first
            async for piece in pieces:
                yield piece

        return StreamingResponse(content(), media_type="text/plain; charset=utf-8")

    @app.get("/{path:path}")
    def page(path: str) -> Response:
        name = path or "index.html"
        if "/" in name or not (STATIC / name).is_file() or Path(name).suffix not in KINDS:
            raise Refused(404, f"There is nothing at {'/' + path[:200]!r}.")
        kind = KINDS[Path(name).suffix]
        return Response((STATIC / name).read_bytes(), media_type=kind, headers={"content-security-policy": POLICY})

    add_errors(app)
    return app


class Passed(Response):
    """An answer that another route writes."""

    def __init__(self, route: Predict, content: bytes):
        super().__init__()
        self.route, self.content = route, content

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.route(scope, replay(self.content, receive), send)


def commands(folder: Path) -> list[dict[str, str]]:
    """Commands that repeat a run and go on with it."""
    try:
        entries = refit_command(read_json(inside(folder, "config.json")))
    except (WonderlandError, KeyError, TypeError, AttributeError):
        entries = []
    quoted = shlex.quote(str(folder))
    if (folder / "trust.json").exists():
        entries.append({"text": "Predict", "command": f"wonderland predict {quoted} NEWDATA -o predictions.csv"})
        entries.append({"text": "Serve", "command": f"wonderland serve {quoted}"})
    else:
        entries.append({"text": "Continue", "command": f"wonderland fit --resume {quoted}"})
    return entries


def guarded(root: str | Path, names: Any, limits: Limits) -> Guard:
    """The application behind its guard."""
    metrics = Metrics(["/api/runs"])
    return Guard(application(root, limits, metrics), limits=limits, metrics=metrics, names=names)  # pyright: ignore
