"""The commands, gathered."""

from __future__ import annotations

import typer

from approvaltrail.local.cli.asking import add_to as add_asking
from approvaltrail.local.cli.exit_codes import ExitCode
from approvaltrail.local.cli.journal import app as journal
from approvaltrail.local.cli.ledger import app as ledger
from approvaltrail.local.cli.running import add_to as add_running
from approvaltrail.local.cli.upkeep import add_to as add_upkeep
from approvaltrail.server.__main__ import app as server

_EPILOG = (
    "Exit codes: "
    + ", ".join(f"{code.value} {code.name.lower().replace('_', ' ')}" for code in ExitCode)
    + ". Addresses: flags, then the environment, then the running `up`."
)

app = typer.Typer(
    name="approvaltrail",
    help="Every issuance, acceptance, refusal and replay of a confirmation token, linked.",
    epilog=_EPILOG,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help"], "max_content_width": 100},
)
add_running(app)
add_asking(app)
add_upkeep(app)
app.add_typer(journal, name="journal")
app.add_typer(ledger, name="ledger")
app.add_typer(server, name="server", help="The MCP and REST server behind the gate.")
