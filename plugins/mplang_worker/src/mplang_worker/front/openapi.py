"""Routes of an HTTP API, and their OpenAPI description, made of the types that read requests."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, get_type_hints

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mplang_worker.base.errors import RequestError

JSON = "application/json"

Handler: TypeAlias = Callable[..., Awaitable[Response]]
"""``handler(request, **parameters)``, whose annotations are the types of its parameters."""


@dataclass(frozen=True, slots=True)
class Content:
    """Content of a body.

    Attributes:
        type: type that it is decoded as; ``bytes`` if it is not described further.
        kind: its media type.
        description: what it is.
    """

    type: Any = bytes
    kind: str = JSON
    description: str = "the response"


class _Parameter(NamedTuple):
    name: str
    type: Any
    default: Any  # ``inspect.Parameter.empty`` for none


class _Operation(NamedTuple):
    method: str
    path: str
    handler: Handler
    takes: Content | None
    gives: Mapping[int, Content | None]


@dataclass(eq=False)
class Api:
    """Routes that are described as they are added.

    Attributes:
        title: name of the API.
        summary: what it does, in a line.
        description: more of it.
        error: content of responses with an error.
        errors: status codes of errors that each route may answer with.
        routes: what was added, for an application.
    """

    title: str
    summary: str
    description: str
    error: Content
    errors: Sequence[int]
    routes: list[Route] = field(default_factory=list)
    _operations: list[_Operation] = field(default_factory=list)

    def route(
        self,
        method: str,
        path: str,
        gives: Content | None,
        *,
        takes: Content | None = None,
        status: int = 200,
        errors: Sequence[int] = (),
        others: Mapping[int, Content | None] | None = None,
    ) -> Callable[[Handler], Handler]:
        """Return a decorator that adds a route; its parameters are those of the function.

        Args:
            method: HTTP method.
            path: path; a name in braces is a parameter, and all others are in the query.
            gives: content of its response; ``None`` for none.
            takes: content of its request; ``None`` for none.
            status: status code of its response.
            errors: further status codes of errors.
            others: contents of other responses, by status code.
        """

        def add(handler: Handler) -> Handler:
            read = _reader_of(handler)

            async def endpoint(request: Request) -> Response:
                return await handler(request, **read(request))

            route = Route(path, endpoint, methods=[method])
            route.methods = {method}  # no HEAD: it would read values, and be on record
            self.routes.append(route)
            answers = dict.fromkeys((*self.errors, *errors), self.error)
            given = {status: gives, **answers, **(others or {})}
            self._operations.append(_Operation(method, path, handler, takes, given))
            return handler

        return add

    def describe(self, *others: type) -> dict[str, Any]:
        """Return the OpenAPI description.

        Args:
            *others: types that it has the schemas of, too, as a description names them.
        """
        schemas, paths = _Schemas(), dict[str, dict[str, Any]]()
        for kind in others:
            schemas.of(kind)
        for each in self._operations:
            paths.setdefault(each.path, {})[each.method.lower()] = _describe(each, schemas)
        told = {"summary": self.summary, "description": self.description}
        return {
            "openapi": "3.1.0",
            "info": {"title": self.title, "version": "1", **told},
            "paths": paths,
            "components": {"schemas": schemas.components},
        }


def _parameters_of(handler: Handler) -> list[_Parameter]:
    """Return the parameters of a handler but the first, which is the request."""
    hints = get_type_hints(handler, include_extras=True)
    taken = list(inspect.signature(handler).parameters.values())[1:]
    return [_Parameter(each.name, hints[each.name], each.default) for each in taken]


def _reader_of(handler: Handler) -> Callable[[Request], Mapping[str, Any]]:
    """Return what reads the parameters of a handler from a request."""
    fields = [
        (name, kind) if default is inspect.Parameter.empty else (name, kind, default)
        for name, kind, default in _parameters_of(handler)
    ]
    struct = msgspec.defstruct("Parameters", fields)

    def read(request: Request) -> Mapping[str, Any]:
        asked = {**request.query_params, **request.path_params}
        try:
            return msgspec.structs.asdict(msgspec.convert(asked, struct, strict=False))
        except msgspec.ValidationError as error:
            raise RequestError(422, "invalid", str(error)) from None

    return read


class _Schemas:
    """JSON schemas of types; those that have names are components."""

    def __init__(self) -> None:
        self.components: dict[str, Any] = {}

    def of(self, kind: Any) -> dict[str, Any]:
        """Return the schema of a type, or a reference to it."""
        if kind is bytes:
            return {"type": "string", "format": "binary"}
        reference = "#/components/schemas/{name}"
        (found,), named = msgspec.json.schema_components([kind], ref_template=reference)
        for schema in named.values():
            if "description" in schema:
                schema["description"] = inspect.cleandoc(schema["description"])
        self.components |= named
        return found


def _describe(operation: _Operation, schemas: _Schemas) -> dict[str, Any]:
    """Return the description of one operation, and collect the schemas that it names."""
    text = inspect.getdoc(operation.handler) or ""
    told: dict[str, Any] = {
        "operationId": operation.handler.__name__,
        "summary": operation.handler.__name__.replace("_", " ").capitalize(),
        "description": text,
        "parameters": [
            _describe_parameter(each, operation.path, schemas)
            for each in _parameters_of(operation.handler)
        ],
        "responses": {
            str(code): _describe_response(content, schemas)
            for code, content in operation.gives.items()
        },
    }
    if operation.takes is not None:
        body = _describe_response(operation.takes, schemas)
        told["requestBody"] = {"required": True, **body}
    return told


def _describe_parameter(given: _Parameter, path: str, schemas: _Schemas) -> dict[str, Any]:
    is_required = given.default is inspect.Parameter.empty
    schema = schemas.of(given.type)
    if not is_required:
        schema["default"] = given.default
    place = "path" if f"{{{given.name}}}" in path else "query"
    return {"name": given.name, "in": place, "required": is_required, "schema": schema}


def _describe_response(content: Content | None, schemas: _Schemas) -> dict[str, Any]:
    if content is None:
        return {"description": "nothing"}
    schema = {"schema": schemas.of(content.type)}
    return {"description": content.description, "content": {content.kind: schema}}
