"""Who looks, as what, and at whose events. Decided afresh on every run from what is signed.

on-call        sees what happened; addresses are masked, and nothing is exported
investigator   sees and exports everything within the scope
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self

from approvaltrail.dashboard.access.settings import AccessSettings, values_of
from approvaltrail.dashboard.errors import AccessRefusedError
from approvaltrail.store.answers import TenantScope

LOCAL_USER: Final = "unauthenticated local user"
_NAME_CHARACTERS: Final = 256


class Role(StrEnum):
    """What a viewer may do."""

    ON_CALL = "on-call"
    INVESTIGATOR = "investigator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What is kept of an identity token: a few short texts, so that a cookie always holds them."""

    subject: str
    name: str
    roles: tuple[str, ...]
    """Those values of the role claim that the settings know."""
    tenant: str | None
    expires_at: int
    """Seconds since 1970."""

    @classmethod
    def of(cls, token: Mapping[str, Any], settings: AccessSettings, now: float) -> Self:
        """Keep what matters of a verified identity token.

        Raises:
            AccessRefusedError: the token names no subject or end, or more than one tenant.
        """
        subject, ends = token.get("sub"), token.get("exp")
        if not isinstance(subject, str) or not subject or not isinstance(ends, int | float):
            raise AccessRefusedError("the identity provider sent no subject or no expiry")
        name = _at(token, settings.oidc_principal_claim)
        known = values_of(settings.oidc_investigator_values) | values_of(
            settings.oidc_on_call_values
        )
        latest = now + settings.oidc_session_minutes * 60
        return cls(
            subject=subject[:_NAME_CHARACTERS],
            name=(name if isinstance(name, str) and name else subject)[:_NAME_CHARACTERS],
            roles=tuple(sorted(known & _texts(_at(token, settings.oidc_role_claim)))),
            tenant=_tenant(token, settings),
            expires_at=int(min(ends, latest)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """Whoever looks at one run of a page."""

    principal: str
    subject: str | None
    """The identity provider's own name for the viewer; None without sign-in."""
    role: Role
    scope: TenantScope

    @property
    def may_export(self) -> bool:
        """Whether evidence may be taken away."""
        return self.role is Role.INVESTIGATOR

    @property
    def sees_addresses(self) -> bool:
        """Whether addresses are shown whole."""
        return self.role is Role.INVESTIGATOR


def local_viewer(scope: TenantScope) -> Viewer:
    """Return the viewer of a dashboard without sign-in."""
    return Viewer(principal=LOCAL_USER, subject=None, role=Role.INVESTIGATOR, scope=scope)


def viewer_of(claims: Claims, settings: AccessSettings, dashboard: TenantScope) -> Viewer:
    """Decide what somebody who signed in may see.

    Raises:
        AccessRefusedError: no known role, no tenant where one is needed, or not this dashboard's.
    """
    return Viewer(
        principal=claims.name,
        subject=claims.subject,
        role=_role(claims, settings),
        scope=_scope(claims, settings, dashboard),
    )


def _role(claims: Claims, settings: AccessSettings) -> Role:
    held = set(claims.roles)
    if held & values_of(settings.oidc_investigator_values):
        return Role.INVESTIGATOR
    if held & values_of(settings.oidc_on_call_values):
        return Role.ON_CALL
    raise AccessRefusedError(
        f"the claim {settings.oidc_role_claim} of your identity holds no role that this dashboard "
        "knows; ask whoever manages identities for the role on-call or investigator"
    )


def _scope(claims: Claims, settings: AccessSettings, dashboard: TenantScope) -> TenantScope:
    if settings.oidc_tenant_claim is None:
        return dashboard
    if claims.tenant is None:
        raise AccessRefusedError(
            f"your identity names no tenant in the claim {settings.oidc_tenant_claim}, so there is "
            "nothing that you may see; ask whoever manages identities"
        )
    if claims.tenant == settings.oidc_all_tenants_value:
        return dashboard
    if dashboard.tenant not in {None, claims.tenant}:
        raise AccessRefusedError("this dashboard shows another tenant than yours")
    return TenantScope.only(claims.tenant)


def _tenant(token: Mapping[str, Any], settings: AccessSettings) -> str | None:
    if settings.oidc_tenant_claim is None:
        return None
    named = _texts(_at(token, settings.oidc_tenant_claim))
    if len(named) > 1:
        raise AccessRefusedError(
            f"the claim {settings.oidc_tenant_claim} names {len(named)} tenants and a session is "
            "for one; ask whoever manages identities"
        )
    tenant = next(iter(named), None)
    if tenant is not None and len(tenant) > _NAME_CHARACTERS:
        raise AccessRefusedError("the tenant of your identity is longer than any tenant's name")
    return tenant


def _at(token: Mapping[str, Any], claim: str) -> Any:
    """Return a claim by its name, or by the path that its dots spell."""
    if claim in token:
        return token[claim]
    found: Any = token
    for step in claim.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def _texts(value: Any) -> frozenset[str]:
    """Return a claim's texts: of a list, or the one that stands alone."""
    many = value if isinstance(value, list | tuple) else [value]
    return frozenset(one for one in many if isinstance(one, str) and one)
