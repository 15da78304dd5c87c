"""Runs a server as a process of its own, over HTTP or over a pipe."""

from __future__ import annotations

import asyncio
from typing import Any

import structlog
import uvicorn

from approvaltrail.gate import Deployment, GateSettings, scrub_secrets
from approvaltrail.producer import Producer, ProducerSettings
from approvaltrail.schemas.errors import SettingsError
from approvaltrail.server.application import Application
from approvaltrail.server.assembly import build
from approvaltrail.server.errors import StartRefusedError
from approvaltrail.server.log import configure_logging
from approvaltrail.server.settings import ServerSettings
from approvaltrail.server.startup import check_server

GRACE_SECONDS = 10
_log = structlog.get_logger(__name__)


def from_environment(deployment: Deployment, **overrides: Any) -> Application:
    """Put together the server that the environment describes, with its logging.

    Raises:
        SettingsError: a setting has no usable value.
        StartRefusedError: the settings allow no safe start; names every reason.
    """
    settings = ServerSettings.from_environment(**overrides)
    gate = GateSettings.from_environment(deployment=deployment)
    secrets = [
        secret.get_secret_value().encode()
        for secret in (gate.confirm_secret, gate.confirm_secret_previous)
        if secret is not None
    ]
    configure_logging(scrub_secrets([*secrets, *settings.secrets]))
    recorder = _producer(settings, gate)
    application = build(settings, gate, recorder=recorder)
    configure_logging(scrub_secrets([*application.gate.keys.secrets, *settings.secrets]))
    return application


def _producer(settings: ServerSettings, gate: GateSettings) -> Producer:
    """Make the producer; where it cannot be, say so beside every other reason."""
    try:
        return Producer(ProducerSettings.from_environment(service=settings.service))
    except SettingsError as error:
        problems = [f"nothing runs unrecorded, and the journal is not usable: {error}"]
        try:
            check_server(settings, gate)
        except StartRefusedError as others:
            problems += others.problems
        raise StartRefusedError(problems) from None


def serve_http(application: Application) -> None:
    """Serve HTTP until the process is told to stop.

    The server's own reading of forwarded addresses is off: `TRUSTED_PROXIES` decides.
    """
    settings = application.settings
    configuration = uvicorn.Config(
        application.http(),
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    uvicorn.Server(configuration).run()


def serve_stdio(application: Application) -> None:
    """Serve MCP over standard input and output until they close."""
    asyncio.run(application.stdio())
