"""The identity provider, through Authlib: authorization code flow with PKCE, nonce and state.

OpenID Connect Core 1.0 §3.1, RFC 7636. The identity token's signature, issuer, audience, times and
nonce are checked; nothing is asked of the userinfo endpoint, and no token is kept.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, Final

import httpx
from authlib.common.errors import AuthlibBaseError  # type: ignore[import-untyped]
from authlib.integrations.starlette_client import OAuth  # type: ignore[import-untyped]
from joserfc.errors import JoseError

from approvaltrail.dashboard.access.settings import AccessSettings
from approvaltrail.dashboard.errors import SignInError

_TIMEOUT_SECONDS: Final = 10.0
_LEEWAY_SECONDS: Final = 30
_SIGNATURES: Final = ("RS", "PS", "ES", "EdDSA")
"""What identity tokens are signed with: by the provider's published keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A sign-in under way: where the browser goes, and what has to come back with it."""

    url: str
    state: str
    nonce: str
    verifier: str


class Provider:
    """Raises SignInError from every method: the provider is out of reach, or does not vouch."""

    def __init__(self, settings: AccessSettings) -> None:
        secret = settings.oidc_client_secret
        self._redirect_uri = settings.redirect_uri
        self._issuer = settings.oidc_issuer
        self._client: Any = OAuth().register(
            "provider",
            client_id=settings.oidc_client_id,
            client_secret=secret.get_secret_value() if secret else None,
            server_metadata_url=f"{settings.oidc_issuer}/.well-known/openid-configuration",
            client_kwargs={
                "scope": settings.oidc_scopes,
                "code_challenge_method": "S256",
                "timeout": _TIMEOUT_SECONDS,
            },
        )

    async def begin(self) -> Begun:
        """Ask for a place to send the browser to."""
        nonce = secrets.token_urlsafe(24)
        try:
            await self._check_issuer()
            made = await self._client.create_authorization_url(self._redirect_uri, nonce=nonce)
        except (httpx.HTTPError, AuthlibBaseError, RuntimeError, ValueError) as error:
            raise SignInError(_out_of_reach(error)) from None
        return Begun(
            url=made["url"], state=made["state"], nonce=nonce, verifier=made["code_verifier"]
        )

    async def finish(self, code: str, *, nonce: str, verifier: str) -> dict[str, Any]:
        """Turn the code into the claims of a verified identity token."""
        try:
            token = await self._client.fetch_access_token(
                redirect_uri=self._redirect_uri, code=code, code_verifier=verifier
            )
            claims = await self._client.parse_id_token(token, nonce=nonce, leeway=_LEEWAY_SECONDS)
        except (AuthlibBaseError, JoseError) as error:
            raise SignInError(
                f"the identity provider did not vouch for the visitor ({type(error).__name__})"
            ) from None
        except (httpx.HTTPError, RuntimeError, ValueError, KeyError) as error:
            raise SignInError(_out_of_reach(error)) from None
        if not claims:
            raise SignInError("the identity provider sent no identity token; is openid in scope?")
        return dict(claims)

    async def _check_issuer(self) -> None:
        metadata = await self._client.load_server_metadata()
        # OpenID Connect Discovery 1.0 §4.3: another issuer's document is not to be used.
        if str(metadata.get("issuer", "")).rstrip("/") != self._issuer:
            raise ValueError("the issuer of the metadata is another")
        offered = metadata.get("id_token_signing_alg_values_supported") or ["RS256"]
        # Neither unsigned tokens nor ones that the client's own secret could have signed.
        metadata["id_token_signing_alg_values_supported"] = [
            one for one in offered if one.startswith(_SIGNATURES)
        ]


def _out_of_reach(error: Exception) -> str:
    return (
        f"the identity provider did not answer as OpenID Connect asks ({type(error).__name__}); "
        "check APPROVALTRAIL_OIDC_ISSUER and that it can be reached from here"
    )
