"""`python -m approvaltrail.server http --port N`, `stdio`, `check`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from approvaltrail.gate import Deployment
from approvaltrail.schemas.errors import SettingsError
from approvaltrail.server.check import main as check_main
from approvaltrail.server.errors import StartRefusedError
from approvaltrail.server.serve import from_environment, serve_http, serve_stdio

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

_Boundary = Annotated[
    str | None, typer.Option("--cluster-allow", help="Ids of the clusters that may be touched.")
]
_Templates = Annotated[Path | None, typer.Option("--templates", help="TOML file of SQL templates.")]


@app.command()
def http(
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one.")] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    cluster_allow: _Boundary = None,
    templates: _Templates = None,
) -> None:
    """Serve MCP at /mcp, and REST at /v1 where it is on."""
    overrides: dict[str, Any] = {"port": port, "host": host}
    _run(Deployment.REMOTE, overrides, cluster_allow, templates)


@app.command()
def stdio(cluster_allow: _Boundary = None, templates: _Templates = None) -> None:
    """Serve MCP over standard input and output, for the user of this machine."""
    _run(Deployment.STDIO, {}, cluster_allow, templates)


@app.command()
def check() -> None:
    """Say what this deployment reaches and how it is set up; change nothing."""
    raise typer.Exit(check_main())


def _run(
    deployment: Deployment,
    overrides: dict[str, Any],
    cluster_allow: str | None,
    templates: Path | None,
) -> None:
    try:
        application = from_environment(
            deployment, **overrides, cluster_allow=cluster_allow, templates=templates
        )
    except (SettingsError, StartRefusedError) as error:
        sys.stderr.write(f"{error}{os.linesep}")
        raise typer.Exit(2) from None
    if deployment is Deployment.REMOTE:
        serve_http(application)
    else:
        serve_stdio(application)


if __name__ == "__main__":
    app()
