"""The commands, gathered: of those that were not asked for, nothing is loaded."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Final

import typer

from approvaltrail.local.cli.exit_codes import ExitCode

_HERE: Final = "approvaltrail.local.cli"
COMMANDS: Final = {
    "up": f"{_HERE}.running",
    "demo": f"{_HERE}.running",
    "smoke": f"{_HERE}.running",
    "sink": f"{_HERE}.running",
    "dashboard": f"{_HERE}.running",
    "replays": f"{_HERE}.asking",
    "trail": f"{_HERE}.asking",
    "events": f"{_HERE}.asking",
    "refusals": f"{_HERE}.refusals",
    "ledger": f"{_HERE}.ledger",
    "pipeline": f"{_HERE}.asking",
    "export": f"{_HERE}.export",
    "redrive": f"{_HERE}.upkeep",
    "retire": f"{_HERE}.retire",
    "migrate": f"{_HERE}.upkeep",
    "journal": f"{_HERE}.journal",
    "doctor": f"{_HERE}.upkeep",
    "version": f"{_HERE}.upkeep",
    "server": "approvaltrail.server.__main__",
}
"""Each command and the module that adds it, in the order of the help."""
_GROUPS: Final = {"server": "The MCP and REST server behind the gate."}
_EPILOG = (
    "Exit codes: "
    + ", ".join(f"{code.value} {code.name.lower().replace('_', ' ')}" for code in ExitCode)
    + ". Addresses: flags, then the environment, then the running `up`."
)


def app(arguments: Sequence[str], **how: Any) -> Any:
    """Run a command line as typer does."""
    return gathered(arguments)(list(arguments), **how)


def gathered(arguments: Sequence[str]) -> typer.Typer:
    """Return the command that is called, or all of them where none is."""
    found = typer.Typer(
        name="approvaltrail",
        help="Every issuance, acceptance, refusal and replay of a confirmation token, linked.",
        epilog=_EPILOG,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help"], "max_content_width": 100},
    )
    found.callback()(_stay_a_group)
    called = arguments[0] if arguments else ""
    modules = [COMMANDS[called]] if called in COMMANDS else list(dict.fromkeys(COMMANDS.values()))
    for name in modules:
        _add(found, name)
    order = list(COMMANDS)
    found.registered_commands.sort(key=lambda one: order.index(_name(one)))
    return found


def _add(to: typer.Typer, module_name: str) -> None:
    module = importlib.import_module(module_name)
    if hasattr(module, "add_to"):
        module.add_to(to)
        return
    command = next(name for name, one in COMMANDS.items() if one == module_name)
    if command in _GROUPS:
        to.add_typer(module.app, name=command, help=_GROUPS[command])
    else:
        to.add_typer(module.app, name=command)


def _name(command: Any) -> str:
    return str(command.name or command.callback.__name__)


def _stay_a_group() -> None:
    """Typer takes a lone command for the whole program, unless there is this."""
