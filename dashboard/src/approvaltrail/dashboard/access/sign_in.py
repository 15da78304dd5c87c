"""The routes of signing in and out.

signin           sends the browser to the identity provider, and keeps where it wanted to go
oauth2callback   takes it back, makes the session, and leads to the page that was asked for
signout          ends the session in this browser
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from approvaltrail.dashboard.access.notices import notice
from approvaltrail.dashboard.access.provider import Provider
from approvaltrail.dashboard.access.session import SESSION_COOKIE, Sessions, state_cookie
from approvaltrail.dashboard.access.settings import AccessSettings
from approvaltrail.dashboard.access.targets import safe_target
from approvaltrail.dashboard.access.viewer import Claims, viewer_of
from approvaltrail.dashboard.errors import AccessRefusedError, SignInError
from approvaltrail.store.answers import TenantScope

_SEE_OTHER: Final = 303
_log = structlog.get_logger("approvaltrail.dashboard")


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """The routes, bound to their provider."""

    settings: AccessSettings
    scope: TenantScope
    """What the dashboard itself is limited to."""
    sessions: Sessions
    provider: Provider
    clock: Callable[[], float] = time.time

    def routes(self) -> list[Route]:
        """Return the routes below the base path."""
        base = self.settings.base_path
        return [
            Route(f"{base}/signin", self._begin, methods=["GET"]),
            Route(f"{base}/oauth2callback", self._finish, methods=["GET"]),
            Route(f"{base}/signout", self._end, methods=["GET"]),
        ]

    async def _begin(self, request: Request) -> Response:
        target = safe_target(request.query_params.get("to"), self.settings.base_path)
        try:
            begun = await self.provider.begin()
        except SignInError as error:
            return self._failed(error)
        kept = {
            "state": begun.state,
            "nonce": begun.nonce,
            "verifier": begun.verifier,
            "target": target,
        }
        response = RedirectResponse(begun.url, status_code=_SEE_OTHER)
        response.set_cookie(**self.sessions.seal_state(begun.state, kept))
        return response

    async def _finish(self, request: Request) -> Response:
        state = request.query_params.get("state", "")
        kept = self.sessions.open_state(request.cookies.get(state_cookie(state)))
        if kept is None or not hmac.compare_digest(kept["state"].encode(), state.encode()):
            return self._failed(SignInError("this sign-in was not begun here, or took too long"))
        try:
            claims = await self._claims(request, kept)
            viewer = viewer_of(claims, self.settings, self.scope)
        except SignInError as error:
            response: Response = self._failed(error)
        except AccessRefusedError as error:
            response = self.refused(error)
        else:
            _log.info("signed_in", role=viewer.role.value)
            response = RedirectResponse(kept["target"], status_code=_SEE_OTHER)
            response.set_cookie(**self.sessions.seal(claims, self.clock()))
        response.set_cookie(**self.sessions.gone(state_cookie(state)))
        return response

    async def _claims(self, request: Request, kept: dict[str, str]) -> Claims:
        code = request.query_params.get("code")
        if not code:
            raise SignInError("the identity provider turned the sign-in down")
        token = await self.provider.finish(code, nonce=kept["nonce"], verifier=kept["verifier"])
        return Claims.of(token, self.settings, self.clock())

    async def _end(self, _request: Request) -> Response:
        response = notice(
            "Signed out",
            "The session in this browser has ended. You may still be signed in at your identity "
            "provider.",
            f"{self.settings.base_path}/signin",
            "Sign in again",
            200,
        )
        response.set_cookie(**self.sessions.gone(SESSION_COOKIE))
        return response

    def _failed(self, error: SignInError) -> Response:
        _log.warning("sign_in_failed", reason=str(error))
        again = f"{self.settings.base_path}/signin"
        return notice("Sign-in did not succeed", f"{error}.", again, "Start over", 502)

    def refused(self, error: AccessRefusedError) -> Response:
        """Say that somebody who is known may not look."""
        _log.warning("access_refused", reason=str(error))
        out = f"{self.settings.base_path}/signout"
        return notice("You may not look at this", f"{error}.", out, "Sign out", 403)
