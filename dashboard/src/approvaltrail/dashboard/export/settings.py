"""How much one export may hold, as the environment says it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from approvaltrail.dashboard.export.reading import DEFAULT_ROWS
from approvaltrail.schemas.environment import EnvironmentSettings


class ExportSettings(EnvironmentSettings):
    """Read by the entry points."""

    export_rows: Annotated[int, Field(ge=1, le=1_000_000)] = DEFAULT_ROWS
    """Events that one export may hold; more is refused with an error that names this cap."""
