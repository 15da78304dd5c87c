"""Puts a server together: settings in, an application out. Nothing is connected yet."""

from __future__ import annotations

from importlib import metadata

from approvaltrail.gate import Clock, Deployment, Gate, GateSettings, Ledger
from approvaltrail.gate.keys import Key
from approvaltrail.schemas import EventRecorder, PrincipalKind
from approvaltrail.server.addresses import TrustedProxies
from approvaltrail.server.application import Application
from approvaltrail.server.auth import AnyOf, CallerBook, Identifier, Identity, OwnKeys
from approvaltrail.server.auth.book import load_callers
from approvaltrail.server.database import Login, PinnedDatabase
from approvaltrail.server.dispatch import Dispatcher
from approvaltrail.server.errors import PlatformRefusedError
from approvaltrail.server.mcp_server import McpSurface
from approvaltrail.server.metrics import CallMetrics, registry_of
from approvaltrail.server.platform import HttpPlatforms, Platforms
from approvaltrail.server.request import Callers
from approvaltrail.server.settings import ServerSettings, listed
from approvaltrail.server.startup import check_server
from approvaltrail.server.surface import Surface
from approvaltrail.server.targets import Probe, Targets
from approvaltrail.server.templates import Template
from approvaltrail.server.tools.access import Pinned, SqlRunner
from approvaltrail.server.tools.toolbox import toolbox_of


def build(  # noqa: PLR0913 - each seam is optional
    settings: ServerSettings,
    gate_settings: GateSettings,
    *,
    recorder: EventRecorder,
    ledger: Ledger | None = None,
    clock: Clock | None = None,
    platforms: Platforms | None = None,
    identifier: Identifier | None = None,
    templates: tuple[Template, ...] | None = None,
    sql_runner: SqlRunner | None = None,
) -> Application:
    """Put a server together.

    Args:
        settings: the server's.
        gate_settings: the gate's; its deployment decides whether callers must be known.
        recorder: where events go: a producer, or any `EventRecorder`.
        ledger: a ledger of the embedding server's own.
        clock: the gate's clock.
        platforms: the cluster platform, closed with the server; by default its HTTP API.
        identifier: tells callers apart, instead of the settings.
        templates: SQL templates, instead of the settings' file.
        sql_runner: runs SQL under a call's authority, instead of a login made for each statement.

    Raises:
        StartRefusedError: naming every reason why these settings allow no safe start.
        SettingsError: the callers' file cannot be used.
    """
    read = check_server(
        settings,
        gate_settings,
        ledger=ledger,
        templates=templates,
        callers_known=identifier is not None,
    )
    gate = Gate(gate_settings, recorder=recorder, ledger=ledger, clock=clock)
    platforms = platforms or HttpPlatforms(settings.addresses)
    pinned = _pinned(settings)
    targets = Targets(
        (template.cluster for template in read), _target_probe(settings, platforms, pinned)
    )
    toolbox = toolbox_of(read, targets, writable=gate_settings.writable)
    own_keys = OwnKeys(platforms) if settings.own_keys else None
    remote = gate_settings.deployment is Deployment.REMOTE
    surface = Surface(
        settings=settings,
        callers=Callers(
            TrustedProxies.parse(listed(settings.trusted_proxies)),
            _credential_key(settings, gate),
            settings.proxy_header,
        ),
        toolbox=toolbox,
        dispatcher=Dispatcher(gate, toolbox),
        platforms=platforms,
        pinned=pinned,
        metrics=CallMetrics(registry_of(recorder)),
        identifier=_mcp_identifier(settings, identifier, own_keys) if remote else None,
        runner=sql_runner,
    )
    version = metadata.version("approvaltrail-server")
    return Application(
        settings=settings,
        gate=gate,
        recorder=recorder,
        surface=surface,
        mcp=McpSurface(surface, name=settings.service, version=version),
        rest_identifier=_rest_identifier(settings, own_keys) if settings.rest else None,
        version=version,
    )


def _credential_key(settings: ServerSettings, gate: Gate) -> Key:
    secret = settings.credential_secret
    if secret is None:
        return gate.keys.signing
    return Key(secret=secret.get_secret_value().encode())


def _mcp_identifier(
    settings: ServerSettings, given: Identifier | None, own_keys: OwnKeys | None
) -> Identifier:
    found: list[Identifier] = [] if given is None else [given]
    if settings.callers is not None:
        found.append(load_callers(settings.callers))
    if own_keys is not None:
        found.append(own_keys)
    return AnyOf(found)


def _rest_identifier(settings: ServerSettings, own_keys: OwnKeys | None) -> Identifier:
    found: list[Identifier] = []
    if settings.rest_token is not None:
        identity = Identity(
            tenant=settings.rest_tenant, principal="rest", principal_kind=PrincipalKind.SERVICE
        )
        found.append(CallerBook.of_tokens({settings.rest_token.get_secret_value(): identity}))
    if own_keys is not None:
        found.append(own_keys)
    return AnyOf(found)


def _pinned(settings: ServerSettings) -> Pinned | None:
    if not settings.tidb_host or not settings.tidb_sql_user or settings.tidb_sql_password is None:
        return None
    login = Login(
        host=settings.tidb_host,
        port=settings.tidb_port,
        user=settings.tidb_sql_user,
        password=settings.tidb_sql_password.get_secret_value(),
        tls=settings.tidb_tls,
    )
    return Pinned(cluster_id=settings.tidb_cluster_id or "", database=PinnedDatabase(login))


def _target_probe(
    settings: ServerSettings, platforms: Platforms, pinned: Pinned | None
) -> Probe | None:
    """Return how a declared target is looked at; None where only callers' own keys reach it."""
    if pinned is not None:
        database = pinned.database

        async def enter(_cluster_id: str) -> None:
            await database.probe()

        return enter
    key = settings.platform_key
    if key is None:
        return None
    platform = platforms.under(key)

    async def find(cluster_id: str) -> None:
        if await platform.get_cluster(cluster_id) is None:
            raise PlatformRefusedError(f"The cluster {cluster_id} is not within this key's reach.")

    return find
