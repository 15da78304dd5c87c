"""An identity: who calls, for which tenant, and with whose authority."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from approvaltrail.schemas import PrincipalKind
from approvaltrail.server.platform.values import ApiKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who a verified credential stands for."""

    tenant: str
    principal: str
    principal_kind: PrincipalKind = PrincipalKind.UNKNOWN
    api_key: ApiKey | None = field(default=None, repr=False)
    """The caller's own authority on the platform; None: the server's own stands behind it."""


class Identifier(Protocol):
    """Tells who a credential stands for."""

    async def identify(self, credential: str) -> Identity | None:
        """Return the identity; None where the credential is not good."""
        ...
