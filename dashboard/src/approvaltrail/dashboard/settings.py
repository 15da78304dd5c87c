"""What the dashboard is told from outside."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field, SecretStr

from approvaltrail.schemas.environment import named
from approvaltrail.store.answers import TenantScope
from approvaltrail.store.labels import LabelThresholds
from approvaltrail.store.queries import Bounds
from approvaltrail.store.settings import StoreSettings

Seconds = Annotated[float, Field(gt=0, le=86_400)]


class DashboardSettings(StoreSettings):
    """Read from the environment by the entry points alone.

    The DSN should be that of a user who may only read; nothing is ever written.
    """

    clickhouse_dsn: SecretStr = Field(
        validation_alias=named(
            "APPROVALTRAIL_DASHBOARD_DSN",
            "CLICKHOUSE_READER_DSN",
            "APPROVALTRAIL_CLICKHOUSE_DSN",
            "CLICKHOUSE_DSN",
        )
    )
    expected_producers: Annotated[int, Field(ge=1)] | None = None
    """How many producers ought to report; completeness is judged against it."""
    dashboard_tenant: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    """Shows one tenant's events only; unset shows all."""
    refresh_seconds: Annotated[float, Field(ge=2, le=3600)] = 15
    """How often Overview, Ledger and Pipeline look again by themselves."""
    stale_seconds: Seconds = 120
    """Behind by more than this, the pipeline is called stale."""
    recent_minutes: Annotated[int, Field(ge=1, le=1440)] = 15
    """What "now" means in the question whether the boundary is under test."""
    boundary_refusals: Annotated[int, Field(ge=1)] = 10
    """This many forged or misdirected presentations in that time are a test of the boundary."""
    retry_window_seconds: Seconds = 120
    """A reuse later than this after the acceptance needs review."""
    retry_reuses: Annotated[int, Field(ge=1, le=1000)] = 3
    """More reuses of one token than this need review."""
    caller_window_seconds: Seconds = 300
    """Several tokens of one caller that come back within this time need review …"""
    caller_nonces: Annotated[int, Field(ge=2, le=1000)] = 2
    """… when they are at least so many."""

    def scope(self) -> TenantScope:
        """Return whose events this dashboard may show."""
        if self.dashboard_tenant is None:
            return TenantScope.everything()
        return TenantScope.only(self.dashboard_tenant)

    def bounds(self) -> Bounds:
        """Return how old something has to be before its absence means something."""
        return Bounds(
            in_flight=timedelta(seconds=self.in_flight_seconds),
            silent_after=timedelta(seconds=self.silent_after_seconds),
        )

    def label_thresholds(self) -> LabelThresholds:
        """Return where a retry ends."""
        return LabelThresholds(
            retry_window=timedelta(seconds=self.retry_window_seconds),
            retry_reuses=self.retry_reuses,
            caller_window=timedelta(seconds=self.caller_window_seconds),
            caller_nonces=self.caller_nonces,
        )
