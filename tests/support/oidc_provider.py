"""A small OpenID Connect provider on this machine: discovery, authorize, token, keys.

It vouches for whoever is chosen on its page; a test says who there is and what claims they have.
Codes are good once, for the client and redirect address they were made for, with PKCE checked.
"""

from __future__ import annotations

import base64
import hashlib
import html
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import uvicorn
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from tests.support.processes import wait_until

CLIENT_ID = "approvaltrail"
CLIENT_SECRET = "a-secret-between-the-dashboard-and-its-provider"


@dataclass
class OidcProvider:
    """The provider. `people` maps a name to the claims that its identity token carries."""

    people: dict[str, dict[str, Any]]
    token_seconds: float = 3600
    issuer: str = ""
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: list[dict[str, str]] = field(default_factory=list)
    """The query of every visit to the authorize page."""
    spoil: dict[str, Any] = field(default_factory=dict)
    """Claims that every identity token carries instead of the right ones."""
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "test"}))
    signing_key: RSAKey | None = None
    """Signs instead of the published key."""
    unsigned: bool = False
    """Whether identity tokens say that they need no signature."""

    def application(self) -> Starlette:
        """Return the ASGI application."""
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._discovery),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
                Route("/jwks", self._jwks),
            ]
        )

    async def _discovery(self, _request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/jwks",
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256", "none", "HS256"],
                "code_challenge_methods_supported": ["S256"],
            }
        )

    async def _authorize(self, request: Request) -> Response:
        query = dict(request.query_params)
        chosen = query.pop("person", None)
        if chosen is None:
            self.asked.append(query)
            links = "".join(
                f'<p><a href="?{html.escape(urlencode(query | {"person": name}))}">'
                f"{html.escape(name)}</a></p>"
                for name in self.people
            )
            return HTMLResponse(
                f"<!doctype html><title>Provider</title><h1>Who are you?</h1>{links}"
            )
        code = secrets.token_urlsafe(16)
        self.codes[code] = query | {"person": chosen}
        back = urlencode({"code": code, "state": query["state"]})
        return RedirectResponse(f"{query['redirect_uri']}?{back}", status_code=302)

    async def _token(self, request: Request) -> Response:
        form = await request.form()
        given = self.codes.pop(str(form.get("code")), None)
        basic = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if given is None or request.headers.get("authorization") != f"Basic {basic}":
            return JSONResponse({"error": "invalid_grant"}, status_code=400)
        digest = hashlib.sha256(str(form.get("code_verifier")).encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if (challenge, form.get("redirect_uri")) != (
            given["code_challenge"],
            given["redirect_uri"],
        ):
            return JSONResponse({"error": "invalid_grant"}, status_code=400)
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": given["client_id"],
            "iat": now,
            "exp": now + self.token_seconds,
            "nonce": given["nonce"],
            "sub": f"subject-of-{given['person']}",
            **self.people[given["person"]],
            **self.spoil,
        }
        token = jwt.encode({"alg": "RS256", "kid": "test"}, claims, self.signing_key or self.key)
        if self.unsigned:
            header = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
            token = f"{header}.{token.split('.')[1]}."
        answer = {"access_token": "opaque", "token_type": "Bearer", "id_token": token}
        return JSONResponse(answer | {"expires_in": int(self.token_seconds)})

    async def _jwks(self, _request: Request) -> Response:
        return JSONResponse({"keys": [self.key.as_dict(private=False)]})


@contextmanager
def running(provider: OidcProvider) -> Iterator[OidcProvider]:
    """Serve the provider on a free port of this machine, in a thread."""
    config = uvicorn.Config(
        provider.application(), host="127.0.0.1", port=0, log_level="critical", lifespan="off"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started, "the identity provider serves")
        port = server.servers[0].sockets[0].getsockname()[1]
        provider.issuer = f"http://127.0.0.1:{port}"
        yield provider
    finally:
        server.should_exit = True
        thread.join(timeout=10)
