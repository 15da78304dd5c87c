"""Puts identities where MCP's authentication keeps them: in the verified access token."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mcp.server.auth.provider import AccessToken

from approvaltrail.schemas import PrincipalKind
from approvaltrail.server.auth.identity import Identifier, Identity
from approvaltrail.server.platform.values import ApiKey

TENANT: Final = "tenant"
KIND: Final = "principal_kind"
OWN_KEY: Final = "own_key"


class AnyOf:
    """Asks several identifiers in turn."""

    def __init__(self, identifiers: Iterable[Identifier]) -> None:
        self._identifiers = tuple(identifiers)

    async def identify(self, credential: str) -> Identity | None:
        """Return what the first one says that knows the credential."""
        for identifier in self._identifiers:
            found = await identifier.identify(credential)
            if found is not None:
                return found
        return None


class AccessTokens:
    """MCP's `TokenVerifier` over an `Identifier`."""

    def __init__(self, identifier: Identifier) -> None:
        self._identifier = identifier

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access token of a good credential.

        The client's id names tenant and principal, so that a session that one of them opened is
        closed to every other.
        """
        identity = await self._identifier.identify(token)
        if identity is None:
            return None
        return AccessToken(
            token=token,
            client_id=f"{identity.tenant}/{identity.principal}",
            scopes=[],
            subject=identity.principal,
            claims={
                TENANT: identity.tenant,
                KIND: identity.principal_kind.value,
                OWN_KEY: identity.api_key is not None,
            },
        )


def identity_of(token: AccessToken) -> Identity | None:
    """Return the identity in a verified access token; None where it names no tenant."""
    claims = token.claims or {}
    tenant = claims.get(TENANT)
    if not isinstance(tenant, str) or not tenant:
        return None
    kind = claims.get(KIND)
    known = {item.value for item in PrincipalKind}
    return Identity(
        tenant=tenant,
        principal=token.subject or token.client_id,
        principal_kind=PrincipalKind(kind) if kind in known else PrincipalKind.UNKNOWN,
        api_key=ApiKey.parse(token.token) if claims.get(OWN_KEY) is True else None,
    )
