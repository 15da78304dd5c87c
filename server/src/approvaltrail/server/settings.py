"""The server's settings, from the environment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, SecretStr

from approvaltrail.schemas.environment import EnvironmentSettings, named
from approvaltrail.server.addresses import ProxyHeader
from approvaltrail.server.platform.http import PlatformAddresses
from approvaltrail.server.platform.values import ApiKey

_ADDRESSES: Final = PlatformAddresses()
HIGHEST_PORT: Final = 65_535


def _of(*names: str) -> object:
    return Field(validation_alias=named(*names))


class ServerSettings(EnvironmentSettings):
    """Where the server listens, whom it lets in, and what it reaches."""

    service: Annotated[str, _of("APPROVALTRAIL_SERVICE")] = "tidb-mcp"
    host: Annotated[str, _of("APPROVALTRAIL_SERVER_HOST")] = "127.0.0.1"
    """The address to listen on."""
    port: Annotated[
        int, Field(ge=0, le=HIGHEST_PORT, validation_alias=named("APPROVALTRAIL_SERVER_PORT"))
    ] = 8765
    """0 takes a free one."""
    public_url: Annotated[str, _of("APPROVALTRAIL_SERVER_PUBLIC_URL")] = ""
    """How callers reach the server; unset: by its host and port."""
    allowed_hosts: Annotated[str, _of("APPROVALTRAIL_SERVER_ALLOWED_HOSTS")] = ""
    """Host headers that are answered, separated by commas; unset: those of the loopback, and on
    another host any."""
    trusted_proxies: Annotated[str, _of("TRUSTED_PROXIES", "APPROVALTRAIL_TRUSTED_PROXIES")] = ""
    """Addresses and networks whose word on the hop before them is believed, separated by commas."""
    proxy_header: Annotated[ProxyHeader, _of("APPROVALTRAIL_SERVER_PROXY_HEADER")] = (
        ProxyHeader.X_FORWARDED_FOR
    )
    """The header in which they say it: `x-forwarded-for`, or `forwarded` (RFC 7239). The other one
    is not read: whoever calls may write it."""
    credential_secret: Annotated[SecretStr | None, _of("APPROVALTRAIL_CREDENTIAL_SECRET")] = None
    """Key of the hash by which events name a caller's credential, 32 bytes or more; also by
    `…_FILE`. Unset, it is CONFIRM_SECRET, and a credential has another name after its rotation."""

    metrics_host: Annotated[str, _of("APPROVALTRAIL_SERVER_METRICS_HOST")] = "127.0.0.1"
    """Where /metrics is served; it asks for no credential."""
    metrics_port: Annotated[
        int | None,
        Field(ge=1, le=HIGHEST_PORT, validation_alias=named("APPROVALTRAIL_SERVER_METRICS_PORT")),
    ] = None
    """Unset serves no metrics."""

    callers: Annotated[Path | None, _of("APPROVALTRAIL_SERVER_CALLERS")] = None
    """TOML file of callers with tokens that the operator issued."""
    own_keys: Annotated[bool, _of("APPROVALTRAIL_SERVER_OWN_KEYS")] = False
    """Callers may present a platform key of their own, as identity and authority in one."""
    rest: Annotated[bool, _of("APPROVALTRAIL_SERVER_REST")] = False
    """Serve REST under /v1."""
    rest_token: Annotated[
        SecretStr | None, _of("APPROVALTRAIL_SERVER_REST_TOKEN", "REST_TOKEN")
    ] = None
    """The static bearer token of REST; also by `…_FILE`."""
    rest_tenant: Annotated[str, _of("APPROVALTRAIL_SERVER_REST_TENANT")] = "rest"
    """The tenant of whoever presents it."""

    cluster_allow: Annotated[str, _of("APPROVALTRAIL_CLUSTER_ALLOW", "TIDB_MCP_CLUSTER_ALLOW")] = ""
    """Ids of the clusters that may be touched, separated by commas; unset: any within reach."""
    templates: Annotated[Path | None, _of("APPROVALTRAIL_SERVER_TEMPLATES")] = None
    """TOML file of SQL templates."""

    platform_public_key: Annotated[str | None, _of("TIDB_CLOUD_PUBLIC_KEY")] = None
    """The public half of the server's own platform key …"""
    platform_private_key: Annotated[SecretStr | None, _of("TIDB_CLOUD_PRIVATE_KEY")] = None
    """… and its private half; also by `…_FILE`."""
    projects_url: Annotated[str, _of("TIDB_CLOUD_PROJECTS_URL")] = _ADDRESSES.projects
    """Where the platform lists projects."""
    clusters_url: Annotated[str, _of("TIDB_CLOUD_CLUSTERS_URL")] = _ADDRESSES.clusters
    """Where it lists and changes clusters."""
    identities_url: Annotated[str, _of("TIDB_CLOUD_IDENTITIES_URL")] = _ADDRESSES.identities
    """Where it lists and changes SQL users."""

    tidb_cluster_id: Annotated[str | None, _of("TIDB_CLUSTER_ID")] = None
    """Which cluster the SQL connection below leads to, by the operator's word."""
    tidb_host: Annotated[str | None, _of("TIDB_HOST")] = None
    """Host of the deployment's one SQL login; unset: a user is made for each statement."""
    tidb_port: Annotated[int, Field(ge=1, le=HIGHEST_PORT, validation_alias=named("TIDB_PORT"))] = (
        4000
    )
    """Its port."""
    tidb_sql_user: Annotated[str | None, _of("TIDB_SQL_USER")] = None
    """Its user, with the cluster's prefix."""
    tidb_sql_password: Annotated[SecretStr | None, _of("TIDB_SQL_PASSWORD")] = None
    """Its password; also by `…_FILE`."""
    tidb_tls: Annotated[bool, _of("TIDB_TLS")] = True
    """Whether SQL endpoints are entered by TLS."""

    @property
    def addresses(self) -> PlatformAddresses:
        """Where the cluster API is."""
        return PlatformAddresses(
            projects=self.projects_url.rstrip("/"),
            clusters=self.clusters_url.rstrip("/"),
            identities=self.identities_url.rstrip("/"),
        )

    @property
    def platform_key(self) -> ApiKey | None:
        """The server's own platform key, where both of its halves are set."""
        if not self.platform_public_key or self.platform_private_key is None:
            return None
        private = self.platform_private_key.get_secret_value()
        return ApiKey(public=self.platform_public_key, private=private) if private else None

    @property
    def boundary(self) -> frozenset[str]:
        """The clusters that may be touched; empty: any within reach."""
        return frozenset(listed(self.cluster_allow))

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """Every configured secret, for the log scrubber alone."""
        found = (
            self.credential_secret,
            self.rest_token,
            self.platform_private_key,
            self.tidb_sql_password,
        )
        texts = (secret.get_secret_value() for secret in found if secret is not None)
        return tuple(text.encode() for text in texts if text)


def listed(text: str) -> tuple[str, ...]:
    """Return the parts of a setting that are separated by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())
