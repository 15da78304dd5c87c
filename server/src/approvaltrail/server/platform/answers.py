"""Reads the cluster API's answers: statuses into errors, bodies into values.

An answer's own message is not passed on: it may quote what the caller sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import httpx

from approvaltrail.server.errors import (
    PlatformError,
    PlatformOutcomeError,
    PlatformRefusedError,
    PlatformRejectedError,
    PlatformSilentError,
)
from approvaltrail.server.platform.values import Backup, Branch, Cluster, SqlUser

_REFUSED: Final = frozenset({401, 403})
_PASSING: Final = frozenset({408, 425, 429})
_FIRST_CLIENT_ERROR: Final = 400
_FIRST_SERVER_ERROR: Final = 500
_ORGANIZATION: Final = "tidb.cloud/organization"


def checked(answer: httpx.Response, *, change: bool) -> Mapping[str, Any]:
    """Return the body of a good answer.

    Raises:
        PlatformRefusedError: 401 or 403.
        PlatformRejectedError: another 4xx.
        PlatformSilentError: no usable answer, to a question or before a change was begun.
        PlatformOutcomeError: no usable answer to a change.
    """
    status = answer.status_code
    if status in _REFUSED:
        raise PlatformRefusedError(
            f"The cluster platform answered {status}: the credential has no right to this.",
            status=status,
        )
    if status in _PASSING:
        raise PlatformSilentError(
            f"The cluster platform answered {status}: not now.", status=status
        )
    if _FIRST_CLIENT_ERROR <= status < _FIRST_SERVER_ERROR:
        raise PlatformRejectedError(
            f"The cluster platform rejected the request with {status}.", status=status
        )
    if not answer.is_success:
        raise _unusable(f"The cluster platform answered {status}.", change=change, status=status)
    try:
        body = answer.json() if answer.content else {}
    except ValueError:
        body = None
    if not isinstance(body, Mapping):
        raise _unusable(
            "The cluster platform's answer cannot be read.", change=change, status=status
        )
    return body


def no_answer(error: httpx.HTTPError, *, change: bool) -> PlatformError:
    """Return the error for a request without an answer.

    A connection that was never made cannot have carried a change.
    """
    never_sent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
    kind = type(error).__name__
    return _unusable(
        f"The cluster platform did not answer ({kind}).",
        change=change and not never_sent,
        status=None,
    )


def _unusable(message: str, *, change: bool, status: int | None) -> PlatformError:
    kind = PlatformOutcomeError if change else PlatformSilentError
    return kind(message, status=status)


def items_of(body: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the listed objects."""
    items = body.get(name) or []
    return [item for item in items if isinstance(item, Mapping)]


def text_of(body: Mapping[str, Any], *names: str) -> str:
    """Return the first of these fields that holds a text, else an empty one."""
    for name in names:
        value = body.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool):
            return str(value)
    return ""


def _inner(body: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        value = body.get(name)
        body = value if isinstance(value, Mapping) else {}
    return body


def cluster_of(body: Mapping[str, Any]) -> Cluster:
    """Read a cluster."""
    public = _inner(body, "endpoints", "public")
    port = public.get("port")
    return Cluster(
        cluster_id=text_of(body, "clusterId", "id"),
        display_name=text_of(body, "displayName"),
        region=text_of(_inner(body, "region"), "name", "displayName"),
        state=text_of(body, "state"),
        organization=text_of(_inner(body, "labels"), _ORGANIZATION) or None,
        user_prefix=text_of(body, "userPrefix") or None,
        host=text_of(public, "host") or None,
        port=port if isinstance(port, int) else None,
    )


def branch_of(body: Mapping[str, Any]) -> Branch:
    """Read a branch."""
    return Branch(
        branch_id=text_of(body, "branchId"),
        display_name=text_of(body, "displayName"),
        state=text_of(body, "state"),
    )


def sql_user_of(body: Mapping[str, Any]) -> SqlUser:
    """Read a SQL user."""
    return SqlUser(user_name=text_of(body, "userName"), role=text_of(body, "builtinRole"))


def backup_of(body: Mapping[str, Any]) -> Backup:
    """Read a backup."""
    return Backup(
        backup_id=text_of(body, "backupId"),
        cluster_id=text_of(body, "clusterId"),
        created_at=text_of(body, "createTime"),
    )
