"""Who may reach the dashboard and how they sign in, as the environment says it."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from approvaltrail.schemas.environment import EnvironmentSettings

LOCAL_HOSTS: Final = ("127.0.0.1", "localhost", "::1")
_CLAIM = Field(min_length=1, max_length=128)
_SECRET_CHARACTERS: Final = 32
_CALLBACK: Final = "/oauth2callback"


class AccessSettings(EnvironmentSettings):
    """Sign-in is on when an issuer is set; without one the pages are for this machine alone."""

    dashboard_url: str | None = None
    """Where browsers find the dashboard, as `https://trail.example.com/audit`."""
    dashboard_allow_open: bool = False
    """Listen beyond this machine without sign-in: something before the dashboard asks for it."""
    dashboard_allow_writer: bool = False
    """Serve others although the database user may write."""
    dashboard_session_secret: SecretStr | None = None
    """Signs sessions. Unset, one is made at each start, and a restart ends all sessions."""
    oidc_issuer: str | None = None
    """Turns sign-in on: the provider whose `/.well-known/openid-configuration` is read."""
    oidc_client_id: str | None = None
    """The client registered with the provider, with `<dashboard_url>/oauth2callback`."""
    oidc_client_secret: SecretStr | None = None
    """Its secret."""
    oidc_scopes: str = "openid email"
    """As little as answers who it is: what a provider sends unasked is dropped."""
    oidc_principal_claim: Annotated[str, _CLAIM] = "email"
    """Names the viewer; `sub` takes its place where it is missing."""
    oidc_role_claim: Annotated[str, _CLAIM] = "roles"
    """A name, or a path such as `realm_access.roles`."""
    oidc_investigator_values: Annotated[str, Field(max_length=1024)] = "investigator"
    """Values of the role claim that make an investigator, separated by commas."""
    oidc_on_call_values: Annotated[str, Field(max_length=1024)] = "on-call"
    """Values of the role claim that make somebody on call."""
    oidc_tenant_claim: Annotated[str, _CLAIM] | None = None
    """Unset, whoever signs in sees every tenant (or the dashboard's one)."""
    oidc_all_tenants_value: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    """The value of the tenant claim that opens all tenants."""
    oidc_session_minutes: Annotated[int, Field(ge=1, le=1440)] = 480
    """A session ends after this long, or with the identity token if that is sooner."""

    @field_validator("dashboard_url", "oidc_issuer")
    @classmethod
    def _is_url(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("takes a URL such as https://trail.example.com")
        if parts.query or parts.fragment or parts.username or parts.password:
            raise ValueError("takes a URL without user, password, query or fragment")
        if parts.scheme == "http" and not is_local(parts.hostname):
            raise ValueError("takes https, save for an address of this machine")
        return value.rstrip("/")

    @field_validator("dashboard_session_secret")
    @classmethod
    def _is_long(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and len(value.get_secret_value()) < _SECRET_CHARACTERS:
            raise ValueError(f"takes at least {_SECRET_CHARACTERS} characters, random ones")
        return value

    @model_validator(mode="after")
    def _all_or_nothing(self) -> Self:
        if self.oidc_issuer is None and self.oidc_client_id is None:
            return self
        needed = {
            "APPROVALTRAIL_OIDC_ISSUER": self.oidc_issuer,
            "APPROVALTRAIL_OIDC_CLIENT_ID": self.oidc_client_id,
            "APPROVALTRAIL_OIDC_CLIENT_SECRET (or …_FILE)": self.oidc_client_secret,
            "APPROVALTRAIL_DASHBOARD_URL": self.dashboard_url,
        }
        lacking = [name for name, value in needed.items() if not value]
        if lacking:
            raise ValueError(f"sign-in also needs {' and '.join(lacking)}")
        return self

    @property
    def sign_in(self) -> bool:
        """Whether viewers have to sign in."""
        return self.oidc_issuer is not None

    @property
    def base_path(self) -> str:
        """The path below which the pages stand: empty, or as `/audit`."""
        return urlsplit(self.dashboard_url or "").path.rstrip("/")

    @property
    def cookies_secure(self) -> bool:
        """Whether browsers come by https alone."""
        return urlsplit(self.dashboard_url or "").scheme == "https"

    @property
    def hosts(self) -> list[str]:
        """Names by which browsers may call the dashboard: a guard against rebound names."""
        known = self.public_host in LOCAL_HOSTS
        return list(LOCAL_HOSTS) if known else [*LOCAL_HOSTS, self.public_host]

    @property
    def public_host(self) -> str:
        """The name by which browsers call the dashboard."""
        return urlsplit(self.dashboard_url or "").hostname or LOCAL_HOSTS[0]

    @property
    def redirect_uri(self) -> str:
        """Where the identity provider sends browsers back to."""
        return f"{self.dashboard_url}{_CALLBACK}"


def is_local(host: str) -> bool:
    """Say whether a host is this machine and nobody else's."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def values_of(listed: str) -> frozenset[str]:
    """Return the values of a setting that lists some, separated by commas."""
    return frozenset(filter(None, (one.strip() for one in listed.split(","))))
