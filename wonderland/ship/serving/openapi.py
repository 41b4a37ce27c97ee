"""The OpenAPI description of a server: that of the framework, and the routes that predict, made from the schemas of the runs."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from wonderland.ship.predictor import Predictor
from wonderland.ship.serving.inputs import LEVEL
from wonderland.ship.serving.limits import Limits

ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type"],
            "properties": {"message": {"type": "string"}, "type": {"type": "string"}},
        }
    },
}
MEANINGS = {
    400: "Not HTTP or not a form",
    401: "No key, or a wrong one",
    403: "From a page of another site",
    404: "There is no such run",
    408: "The body came too slowly",
    411: "Without a length",
    413: "Too large",
    415: "Not of a type that is read here",
    421: "Not a host name of this server",
    422: "Not what the schema asks for",
    429: "Too many requests",
    503: "Too much is waiting",
}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Responses of errors, for the description of a route."""
    chosen = {*statuses, 401, 403, 421, 429}
    content = {"application/json": {"schema": ERROR}}
    return {status: {"description": MEANINGS[status], "content": content} for status in sorted(chosen)}


def describe(app: FastAPI, predictors: dict[str, Predictor], predict: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """The whole description."""
    document = get_openapi(title=app.title, version=app.version, openapi_version="3.1.0", routes=app.routes)
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schemas.pop("HTTPValidationError", None)
    schemas.pop("ValidationError", None)
    models = [name for name, predictor in predictors.items() if "chat" in predictor.run.abilities]
    for request in ("Completion", "Chat"):
        properties = schemas[request]["properties"]
        properties["model"] |= {"enum": models} if models else {}
        for name in {"max_tokens", "max_completion_tokens"} & set(properties):
            properties[name]["anyOf"][0]["maximum"] = limits.tokens
    for i, (name, predictor) in enumerate(predictors.items()):
        route = predict[name]
        body = route.inputs.body.json_schema(ref_template=f"#/components/schemas/{{model}}{i}")
        schemas |= {f"{key}{i}": value for key, value in body.pop("$defs", {}).items()}
        schemas[f"Body{i}"] = body
        path = f"/v1/runs/{name}/predict"
        document["paths"][path] = {"post": _operation(name, i, predictor, route)}
        if len(predictors) == 1:
            document["paths"]["/predict"] = {"post": _operation(name, i, predictor, route) | {"operationId": "predict"}}
    return document


def _operation(name: str, i: int, predictor: Predictor, route: Any) -> dict[str, Any]:
    content: dict[str, Any] = {"application/json": {"schema": {"$ref": f"#/components/schemas/Body{i}"}}}
    if route.upload is None:
        content["text/csv"] = {"schema": {"type": "string", "description": "Rows with the fields as columns."}}
    else:
        form = {"type": "object", "required": ["file"], "properties": {"file": {"type": "string", "format": "binary"}}}
        content["multipart/form-data"] = {"schema": form}
    level = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
    answers: dict[str, Any] = {"application/json": {"schema": _answer(predictor)}}
    if route.upload is None:
        answers["text/csv"] = {"schema": {"type": "string"}}
    return {
        "summary": f"Predict with {name}",
        "operationId": f"predict_{i}",
        "parameters": [{"name": "level", "in": "query", "required": False, "schema": level, "description": LEVEL}],
        "requestBody": {"required": True, "content": content},
        "responses": {
            "200": {"description": "The predictions, in the order of the rows", "content": answers},
            **{str(status): response for status, response in errors(400, 408, 413, 415, 422, 503).items()},
        },
    }


def _answer(predictor: Predictor) -> dict[str, Any]:
    record: dict[str, Any] = {"type": "object"}
    if predictor.run.classes is not None:
        record["properties"] = {
            "prediction": {"type": "string"},
            "probability": {"type": "number"},
            "set": {"type": "array", "items": {"type": "string"}},
            "probabilities": {"type": "object", "additionalProperties": {"type": "number"}},
        }
    properties = {
        "run": {"type": "string"},
        "version": {"type": "string"},
        "level": {"type": "number"},
        "predictions": {"type": "array", "items": record},
    }
    return {"type": "object", "required": list(properties), "properties": properties}
