"""The caller of one request, taken once and from its own context.

Tenant and principal come from the verified credential, addresses from the connection and the
trusted proxies; what a client says of itself is recorded as such. The caller's own credential is
removed from every text that the caller chose.
"""

from __future__ import annotations

import getpass
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.context import ServerRequestContext
from starlette.requests import Request

from approvaltrail.gate import Caller
from approvaltrail.gate.keys import Key
from approvaltrail.schemas import PrincipalKind, new_event_id
from approvaltrail.schemas.token_shape import REPLACEMENT, parts_of, without_tokens
from approvaltrail.server.addresses import Origin, ProxyHeader, TrustedProxies
from approvaltrail.server.auth.identity import Identity
from approvaltrail.server.auth.verifier import identity_of
from approvaltrail.server.platform.values import ApiKey

_TRACEPARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?")
_NO_VERSION: Final = "ff"
_REQUEST_ID: Final = re.compile(r"[\x21-\x7e]{1,128}")
_SECRET_CHARACTERS: Final = 16
"""A shorter part of a credential is no secret, and may well be an ordinary word."""
_CREDENTIAL_DOMAIN: Final = b"approvaltrail credential id v1\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """Who calls, and the authority that the caller brought."""

    caller: Caller
    api_key: ApiKey | None = field(default=None, repr=False)
    identified: bool = False
    """A verified credential stands behind the caller."""


class Callers:
    """Makes callers from requests."""

    def __init__(
        self,
        proxies: TrustedProxies,
        credential_key: Key,
        header: ProxyHeader = ProxyHeader.X_FORWARDED_FOR,
    ) -> None:
        """Take the proxies and the header that they write, and the key of credentials' hashes."""
        self._proxies = proxies
        self._credential_key = credential_key
        self._header = header

    def of_mcp(self, context: ServerRequestContext[Any, Any]) -> Presence:
        """Return who makes an MCP request; without HTTP, it is the user of this machine."""
        request = context.request
        client = context.session.client_params
        name = "" if client is None else f"{client.client_info.name} {client.client_info.version}"
        if not isinstance(request, Request):
            trace = (context.meta or {}).get("traceparent")
            return local_presence(
                client_name=name.strip() or None,
                request_id=str(context.request_id),
                trace_id=trace_id_of(trace if isinstance(trace, str) else None),
            )
        user = request.scope.get("user")
        token = user.access_token if isinstance(user, AuthenticatedUser) else None
        return self._of_request(
            request,
            identity=None if token is None else identity_of(token),
            credential="" if token is None else token.token,
            client_name=name.strip() or request.headers.get("user-agent"),
            session_id=request.headers.get("mcp-session-id"),
        )

    def of_rest(self, request: Request, identity: Identity, credential: str) -> Presence:
        """Return who makes a REST request."""
        return self._of_request(
            request,
            identity=identity,
            credential=credential,
            client_name=request.headers.get("user-agent"),
            session_id=None,
        )

    def _of_request(
        self,
        request: Request,
        *,
        identity: Identity | None,
        credential: str,
        client_name: str | None,
        session_id: str | None,
    ) -> Presence:
        hidden = (*parts_of(credential), *credential.split(":"))
        origin = self.origin(request)
        caller = Caller(
            tenant=None if identity is None else identity.tenant,
            principal=None if identity is None else identity.principal,
            principal_kind=(PrincipalKind.UNKNOWN if identity is None else identity.principal_kind),
            credential_id=self._credential_id(credential) if credential else None,
            session_id=_without_credential(session_id, hidden),
            peer_address=origin.peer,
            client_address=origin.client,
            address_source=origin.source,
            client_name=_without_credential(client_name, hidden),
            request_id=without_tokens(request_id_of(request.headers), hidden),  # answers repeat it
            trace_id=trace_id_of(request.headers.get("traceparent")),
        )
        return Presence(
            caller=caller,
            api_key=None if identity is None else identity.api_key,
            identified=identity is not None,
        )

    def origin(self, request: Request) -> Origin:
        """Return where a request came from."""
        peer = None if request.client is None else request.client.host
        return self._proxies.origin(peer, self._header.hops(request.headers.getlist(self._header)))

    def _credential_id(self, credential: str) -> str:
        """Return a keyed hash: the same for the same credential, and of no use to guess it."""
        mac = self._credential_key.mac(_CREDENTIAL_DOMAIN + credential.encode())
        return mac.hex()[:32]


def local_presence(
    *, client_name: str | None = None, request_id: str | None = None, trace_id: str | None = None
) -> Presence:
    """Return the user of this machine, who talks over a pipe."""
    return Presence(
        caller=Caller(
            principal=_user(),
            principal_kind=PrincipalKind.USER,
            client_name=client_name,
            request_id=request_id,
            trace_id=trace_id,
        )
    )


def trace_id_of(header: str | None) -> str | None:
    """Return the trace id of a W3C `traceparent`; None where it is not valid.

    https://www.w3.org/TR/trace-context/#traceparent-header
    """
    found = _TRACEPARENT.fullmatch(header or "")
    if found is None or found[1] == _NO_VERSION or not found[2].strip("0"):
        return None
    return found[2] if found[3].strip("0") else None


def request_id_of(headers: Mapping[str, str]) -> str:
    """Return the caller's request id where it is a plain one, else a new one."""
    given = headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else new_event_id()


def _without_credential(text: str | None, parts: tuple[str, ...]) -> str | None:
    """Take the credential out; a confirmation token is left to the gate, which counts it too."""
    for part in parts:
        if text and len(part) >= _SECRET_CHARACTERS:
            text = text.replace(part, REPLACEMENT)
    return text or None


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None
