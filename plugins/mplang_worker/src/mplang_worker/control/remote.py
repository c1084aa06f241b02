"""Control commands at the port of a worker, for those whose certificates its owner has listed."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from mplang_worker.base.config import WorkerConfig
from mplang_worker.control.app import create_control_app
from mplang_worker.control.peer import ControlRole
from mplang_worker.front.engines import Engines

PATH = "/control"


class CertificateRoles:
    """ASGI application that gives clients the roles of their certificates.

    Args:
        app: the application that it asks.
        config: configuration of the worker.
    """

    def __init__(self, app: ASGIApp, config: WorkerConfig) -> None:
        self._app = app
        self._roles = {
            name: frozenset(map(ControlRole, roles)) for name, roles in config.controllers.items()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        state = scope.get("state", {})
        caller = state.get("caller")
        roles = self._roles.get(caller, frozenset())
        about = {"roles": roles, "peer": f"{caller} (certificate)"}
        await self._app({**scope, "state": {**state, **about}}, receive, send)


def add_remote_control(app: Starlette, config: WorkerConfig, engines: Engines) -> None:
    """Add the control commands to the application of a worker's port, if anyone may use them there.

    Args:
        app: the application.
        config: configuration of the worker.
        engines: its engines.
    """
    if config.controllers:
        control = CertificateRoles(create_control_app(config, engines), config)
        app.router.routes.append(Mount(PATH, app=control))
