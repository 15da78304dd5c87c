"""When a server must not start: one table, and every reason at once.

The gate's own rules are part of it. These here stop a deployment that appears to keep callers or
clusters apart without doing so, which is worse than one that visibly does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from approvaltrail.gate import Deployment, GateSettings, Ledger
from approvaltrail.gate import StartupRefusedError as GateRefusedError
from approvaltrail.gate.keys import MINIMUM_SECRET_BYTES
from approvaltrail.gate.startup import check_startup
from approvaltrail.server.addresses import TrustedProxies
from approvaltrail.server.errors import StartRefusedError, TemplateError
from approvaltrail.server.settings import ServerSettings, listed
from approvaltrail.server.templates import Template, load_templates
from approvaltrail.server.tools.toolbox import reserved_names

MINIMUM_TOKEN_BYTES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the rules look at."""

    settings: ServerSettings
    gate: GateSettings
    templates: tuple[Template, ...] = ()
    callers_known: bool = False
    """Something tells callers apart, though no setting says so: an embedding server's own."""

    @property
    def remote(self) -> bool:
        """Whether callers come over a network."""
        return self.gate.deployment is Deployment.REMOTE

    @property
    def targets(self) -> tuple[str, ...]:
        """The distinct declared clusters."""
        return tuple(sorted({template.cluster for template in self.templates}))

    @property
    def pinned_parts(self) -> dict[str, bool]:
        """Which parts of the SQL login are set."""
        settings = self.settings
        return {
            "TIDB_HOST": bool(settings.tidb_host),
            "TIDB_SQL_USER": bool(settings.tidb_sql_user),
            "TIDB_SQL_PASSWORD": settings.tidb_sql_password is not None,
        }

    @property
    def pinned(self) -> bool:
        """Whether the deployment brings a SQL login of its own."""
        return any(self.pinned_parts.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One kind of reason not to start; `problems` gives none where it is kept."""

    code: str
    problems: Callable[[Facts], Iterable[str]]


def _outside_boundary(facts: Facts) -> Iterable[str]:
    boundary = facts.settings.boundary
    for template in facts.templates:
        if boundary and template.cluster not in boundary:
            yield (
                f"template {template.name!r} declares the cluster {template.cluster!r}, which lies "
                "outside APPROVALTRAIL_CLUSTER_ALLOW; add it there or correct the template"
            )


def _taken_names(facts: Facts) -> Iterable[str]:
    for template in facts.templates:
        if template.name in reserved_names():
            yield f"template {template.name!r} has the name of another tool; rename it"


def _many_targets(facts: Facts) -> Iterable[str]:
    if facts.pinned and len(facts.targets) > 1:
        yield (
            f"the SQL login of TIDB_HOST leads to one cluster, but templates declare "
            f"{len(facts.targets)} ({', '.join(facts.targets)}): the login ignores what they "
            "declare, so that the boundary would exist on paper alone; declare one cluster, or "
            "leave the login out"
        )


def _login_without_cluster(facts: Facts) -> Iterable[str]:
    if facts.pinned and not facts.settings.tidb_cluster_id:
        yield (
            "TIDB_CLUSTER_ID is not set: nothing says to which cluster the SQL login of TIDB_HOST "
            "leads, so that no declared or chosen cluster could be compared with it"
        )


def _rest_without_cluster(facts: Facts) -> Iterable[str]:
    settings = facts.settings
    static = settings.rest and settings.rest_token is not None
    if static and facts.templates and not facts.pinned and not settings.tidb_cluster_id:
        yield (
            "templates declare a cluster, but the REST deployment has no cluster identity to "
            "compare it with; set TIDB_CLUSTER_ID"
        )


def _another_cluster(facts: Facts) -> Iterable[str]:
    known = facts.settings.tidb_cluster_id
    for template in facts.templates:
        if known and template.cluster != known and len(facts.targets) == 1:
            yield (
                f"template {template.name!r} declares the cluster {template.cluster!r}, but this "
                f"deployment is that of {known!r} (TIDB_CLUSTER_ID); a template file may have been "
                "copied from elsewhere"
            )


def _half_login(facts: Facts) -> Iterable[str]:
    missing = [name for name, there in facts.pinned_parts.items() if not there]
    if facts.pinned and missing:
        yield f"the SQL login is incomplete: {', '.join(missing)} not set; set all, or none"


def _half_key(facts: Facts) -> Iterable[str]:
    settings = facts.settings
    if bool(settings.platform_public_key) is not (settings.platform_private_key is not None):
        yield "set TIDB_CLOUD_PUBLIC_KEY and TIDB_CLOUD_PRIVATE_KEY together, or neither"


def _nothing_behind(facts: Facts) -> Iterable[str]:
    settings = facts.settings
    if settings.platform_key is None and not settings.own_keys and not facts.pinned:
        yield (
            "no credential stands behind the tools: set TIDB_CLOUD_PUBLIC_KEY and "
            "TIDB_CLOUD_PRIVATE_KEY, or let callers bring theirs with "
            "APPROVALTRAIL_SERVER_OWN_KEYS=true"
        )


def _unknown_callers(facts: Facts) -> Iterable[str]:
    settings = facts.settings
    known = facts.callers_known or settings.callers is not None or settings.own_keys
    if facts.remote and not known and not (settings.rest and settings.rest_token is not None):
        yield (
            "nothing tells callers apart, so that no tenant would be known: name their tokens in "
            "APPROVALTRAIL_SERVER_CALLERS, or set APPROVALTRAIL_SERVER_OWN_KEYS=true"
        )


def _rest_open(facts: Facts) -> Iterable[str]:
    settings = facts.settings
    if settings.rest and settings.rest_token is None and not settings.own_keys:
        yield (
            "REST would let nobody in: set APPROVALTRAIL_SERVER_REST_TOKEN, or "
            "APPROVALTRAIL_SERVER_OWN_KEYS=true"
        )


def _rest_token_weak(facts: Facts) -> Iterable[str]:
    token = facts.settings.rest_token
    if token is not None and len(token.get_secret_value().encode()) < MINIMUM_TOKEN_BYTES:
        yield (
            f"APPROVALTRAIL_SERVER_REST_TOKEN has fewer than {MINIMUM_TOKEN_BYTES} bytes; make one "
            "with `openssl rand -base64 48`"
        )


def _credential_secret(facts: Facts) -> Iterable[str]:
    secret = facts.settings.credential_secret
    if secret is not None and len(secret.get_secret_value().encode()) < MINIMUM_SECRET_BYTES:
        yield (
            f"APPROVALTRAIL_CREDENTIAL_SECRET has fewer than {MINIMUM_SECRET_BYTES} bytes; make "
            "one with `openssl rand -base64 48`, or unset it"
        )


def _rest_tenant(facts: Facts) -> Iterable[str]:
    if facts.settings.rest and not facts.settings.rest_tenant:
        yield "APPROVALTRAIL_SERVER_REST_TENANT is empty; name the tenant of the static token"


def _proxies(facts: Facts) -> Iterable[str]:
    for text in listed(facts.settings.trusted_proxies):
        try:
            TrustedProxies.parse([text])
        except ValueError:
            yield f"TRUSTED_PROXIES: {text!r} is no address and no network"


RULES: Final = (
    Rule(code="template_outside_boundary", problems=_outside_boundary),
    Rule(code="template_name_taken", problems=_taken_names),
    Rule(code="login_with_many_targets", problems=_many_targets),
    Rule(code="login_without_cluster_identity", problems=_login_without_cluster),
    Rule(code="rest_without_cluster_identity", problems=_rest_without_cluster),
    Rule(code="cluster_identity_differs", problems=_another_cluster),
    Rule(code="login_incomplete", problems=_half_login),
    Rule(code="platform_key_incomplete", problems=_half_key),
    Rule(code="no_credential", problems=_nothing_behind),
    Rule(code="callers_unknown", problems=_unknown_callers),
    Rule(code="rest_without_credential", problems=_rest_open),
    Rule(code="rest_token_weak", problems=_rest_token_weak),
    Rule(code="rest_tenant_missing", problems=_rest_tenant),
    Rule(code="credential_secret_weak", problems=_credential_secret),
    Rule(code="trusted_proxies_unusable", problems=_proxies),
)


def check_server(
    settings: ServerSettings,
    gate: GateSettings,
    *,
    ledger: Ledger | None = None,
    templates: tuple[Template, ...] | None = None,
    callers_known: bool = False,
) -> tuple[Template, ...]:
    """Return the templates if a server may start with these settings.

    Args:
        settings: the server's.
        gate: the gate's.
        ledger: the ledger that the gate is given, if any.
        templates: templates that were read already; else the file of the settings is read.
        callers_known: an identifier of the embedding server's own tells callers apart.

    Raises:
        StartRefusedError: naming everything that is wrong, the gate's reasons included.
    """
    problems: list[str] = []
    try:
        check_startup(gate, ledger)
    except GateRefusedError as error:
        problems += error.problems
    read = templates or ()
    if templates is None and settings.templates is not None:
        try:
            read = load_templates(settings.templates)
        except TemplateError as error:
            problems += error.problems
    facts = Facts(settings=settings, gate=gate, templates=read, callers_known=callers_known)
    problems += [problem for rule in RULES for problem in rule.problems(facts)]
    if problems:
        raise StartRefusedError(problems)
    return read
