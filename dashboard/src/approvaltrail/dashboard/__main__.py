"""`python -m approvaltrail.dashboard --port 8501`: serve the pages on this machine."""

from __future__ import annotations

import argparse
import sys

from approvaltrail.dashboard.access.binding import LOOPBACK, check_address
from approvaltrail.dashboard.access.database_user import check_database_user
from approvaltrail.dashboard.access.settings import AccessSettings
from approvaltrail.dashboard.errors import DashboardError
from approvaltrail.dashboard.launch import serve
from approvaltrail.dashboard.settings import DashboardSettings
from approvaltrail.schemas.errors import SettingsError
from approvaltrail.store.errors import StoreError


def main(arguments: list[str] | None = None) -> int:
    """Read the settings, say what is wrong with them, or serve until a signal comes."""
    given = _parser().parse_args(arguments)
    try:
        settings = DashboardSettings.from_environment()
        access = AccessSettings.from_environment()
        allow_open = access.dashboard_allow_open or given.allow_open
        check_address(given.address, access, allow_open=allow_open)
        check_database_user(settings.dsn(), access, given.address)
        serve(
            given.port, given.address, access=access, scope=settings.scope(), allow_open=allow_open
        )
    except (SettingsError, DashboardError, StoreError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="approvaltrail-dashboard", description=__doc__)
    parser.add_argument("--port", type=int, default=8501, help="port to listen on (8501)")
    parser.add_argument(
        "--address", "--host", default=LOOPBACK, help=f"address to listen on ({LOOPBACK})"
    )
    parser.add_argument(
        "--allow-open",
        action="store_true",
        help="listen beyond this machine without sign-in, since something in front asks for it",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
