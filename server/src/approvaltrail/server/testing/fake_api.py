"""The cluster API as documented, over a world: the paths, the digest challenge, the 403s.

`uvicorn` can serve it on a port; httpx's ASGI transport can call it without one.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from approvaltrail.server.errors import (
    PlatformError,
    PlatformOutcomeError,
    PlatformRefusedError,
    PlatformRejectedError,
)
from approvaltrail.server.platform.values import ApiKey, Backup, Branch, Cluster, Projects, SqlUser
from approvaltrail.server.testing.memory import MemoryPlatform
from approvaltrail.server.testing.world import World

NO_PERMISSION: Final = 49_900_003
_REALM: Final = "tidb.cloud"
_PART: Final = re.compile(r'(\w+)=(?:"([^"]*)"|([^,\s]+))')
_Handler = Callable[[MemoryPlatform, Request], Awaitable[Any]]


def fake_api(world: World) -> Starlette:
    """Return the API of a world."""
    at = "/v1beta1/clusters"
    table: tuple[tuple[str, str, _Handler], ...] = (
        ("GET", "/api/v1beta/projects", _projects),
        ("GET", at, _list_clusters),
        ("POST", at, _create_cluster),
        ("POST", f"{at}:restore", _restore),
        ("GET", f"{at}/{{cluster}}", _get_cluster),
        ("PATCH", f"{at}/{{cluster}}", _update_cluster),
        ("DELETE", f"{at}/{{cluster}}", _delete_cluster),
        ("GET", f"{at}/{{cluster}}/branches", _list_branches),
        ("POST", f"{at}/{{cluster}}/branches", _create_branch),
        ("DELETE", f"{at}/{{cluster}}/branches/{{branch}}", _delete_branch),
        ("GET", f"{at}/{{cluster}}/sqlUsers", _list_users),
        ("POST", f"{at}/{{cluster}}/sqlUsers", _create_user),
        ("PATCH", f"{at}/{{cluster}}/sqlUsers/{{user}}", _update_user),
        ("DELETE", f"{at}/{{cluster}}/sqlUsers/{{user}}", _delete_user),
        ("GET", "/v1beta1/backups", _list_backups),
        ("POST", "/v1beta1/backups", _create_backup),
        ("GET", "/v1beta1/backups/{backup}", _get_backup),
    )
    nonce = secrets.token_hex(16)
    return Starlette(
        routes=[
            Route(path, _endpoint(world, nonce, handler), methods=[method])
            for method, path, handler in table
        ]
    )


def _endpoint(
    world: World, nonce: str, handler: _Handler
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        key = _authenticated(world, request, nonce)
        if key is None:
            challenge = f'Digest realm="{_REALM}", nonce="{nonce}", algorithm=MD5, qop="auth"'
            return _error(401, 16, "unauthenticated", {"WWW-Authenticate": challenge})
        try:
            return JSONResponse(await handler(MemoryPlatform(world, key), request))
        except PlatformRefusedError:
            return _refused()
        except PlatformRejectedError:
            return _error(404, 5, "not found")
        except PlatformError as error:
            return _error(503 if not isinstance(error, PlatformOutcomeError) else 500, 14, "later")

    return endpoint


def _refused() -> JSONResponse:
    return _error(403, NO_PERMISSION, "CheckApiKeyPermission not pass: identity has no permission")


def _error(
    status: int, code: int, message: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    return JSONResponse(
        {"code": code, "message": message, "details": []}, status_code=status, headers=headers
    )


def _authenticated(world: World, request: Request, nonce: str) -> ApiKey | None:
    """Check an RFC 7616 digest; None where it is missing or wrong."""
    scheme, _, rest = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "digest":
        return None
    given = {name: quoted or plain for name, quoted, plain in _PART.findall(rest)}
    grant = world.grants.get(given.get("username", ""))
    if grant is None or given.get("nonce") != nonce:
        return None
    first = _md5(f"{given['username']}:{_REALM}:{grant.private}")
    second = _md5(f"{request.method}:{given.get('uri', '')}")
    middle = ":".join(given.get(name, "") for name in ("nonce", "nc", "cnonce", "qop"))
    if not secrets.compare_digest(given.get("response", ""), _md5(f"{first}:{middle}:{second}")):
        return None
    return ApiKey(public=given["username"], private=grant.private)


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


async def _body(request: Request) -> dict[str, Any]:
    read = await request.json()
    return read if isinstance(read, dict) else {}


def _path(request: Request, name: str) -> str:
    return str(request.path_params[name])


def _cluster(cluster: Cluster) -> dict[str, Any]:
    return {
        "name": f"clusters/{cluster.cluster_id}",
        "clusterId": cluster.cluster_id,
        "displayName": cluster.display_name,
        "region": {"name": cluster.region},
        "state": cluster.state,
        "userPrefix": cluster.user_prefix,
        "labels": {"tidb.cloud/organization": cluster.organization},
        "endpoints": {"public": {"host": cluster.host, "port": cluster.port}},
    }


def _branch(branch: Branch) -> dict[str, Any]:
    return {
        "branchId": branch.branch_id,
        "displayName": branch.display_name,
        "state": branch.state,
    }


def _user(user: SqlUser) -> dict[str, Any]:
    return {"userName": user.user_name, "builtinRole": user.role}


def _backup(backup: Backup) -> dict[str, Any]:
    return {
        "backupId": backup.backup_id,
        "clusterId": backup.cluster_id,
        "createTime": backup.created_at,
    }


async def _projects(platform: MemoryPlatform, _request: Request) -> Any:
    if await platform.projects() is Projects.HIDDEN:
        raise PlatformRefusedError("hidden", status=403)
    return {"items": [{"id": "1", "name": "default"}], "total": 1}


async def _list_clusters(platform: MemoryPlatform, request: Request) -> Any:
    page = await platform.list_clusters(request.query_params.get("pageToken"))
    listing: dict[str, Any] = {"clusters": [_cluster(cluster) for cluster in page.clusters]}
    return listing if page.next_page is None else {**listing, "nextPageToken": page.next_page}


async def _get_cluster(platform: MemoryPlatform, request: Request) -> Any:
    found = await platform.get_cluster(_path(request, "cluster"))
    if found is None:
        raise PlatformRejectedError("absent", status=404)
    return _cluster(found)


async def _create_cluster(platform: MemoryPlatform, request: Request) -> Any:
    body = await _body(request)
    made = await platform.create_cluster(
        display_name=body["displayName"],
        region=body["region"]["name"],
        spending_limit_cents=body["spendingLimit"]["monthly"],
    )
    return _cluster(made)


async def _update_cluster(platform: MemoryPlatform, request: Request) -> Any:
    body = await _body(request)
    name = body["cluster"]["displayName"]
    await platform.update_cluster(_path(request, "cluster"), display_name=name)
    return {}


async def _delete_cluster(platform: MemoryPlatform, request: Request) -> Any:
    await platform.delete_cluster(_path(request, "cluster"))
    return {}


async def _restore(platform: MemoryPlatform, request: Request) -> Any:
    body = await _body(request)
    if "snapshot" in body:
        return {"clusterId": await platform.restore_backup(body["snapshot"]["backupId"])}
    past = body["pointInTime"]
    made = await platform.restore_cluster(past["clusterId"], point_in_time=past["backupTime"])
    return {"clusterId": made}


async def _list_branches(platform: MemoryPlatform, request: Request) -> Any:
    found = await platform.list_branches(_path(request, "cluster"))
    return {"branches": [_branch(branch) for branch in found]}


async def _create_branch(platform: MemoryPlatform, request: Request) -> Any:
    name = (await _body(request))["displayName"]
    return _branch(await platform.create_branch(_path(request, "cluster"), display_name=name))


async def _delete_branch(platform: MemoryPlatform, request: Request) -> Any:
    await platform.delete_branch(_path(request, "cluster"), _path(request, "branch"))
    return {}


async def _list_users(platform: MemoryPlatform, request: Request) -> Any:
    found = await platform.list_sql_users(_path(request, "cluster"))
    return {"sqlUsers": [_user(user) for user in found]}


async def _create_user(platform: MemoryPlatform, request: Request) -> Any:
    body = await _body(request)
    made = await platform.create_sql_user(
        _path(request, "cluster"),
        user_name=body["userName"],
        role=body["builtinRole"],
        password=body["password"],
    )
    return _user(made)


async def _update_user(platform: MemoryPlatform, request: Request) -> Any:
    role = (await _body(request))["builtinRole"]
    cluster, user = _path(request, "cluster"), _path(request, "user")
    await platform.update_sql_user(cluster, user, role=role)
    return {}


async def _delete_user(platform: MemoryPlatform, request: Request) -> Any:
    await platform.delete_sql_user(_path(request, "cluster"), _path(request, "user"))
    return {}


async def _list_backups(platform: MemoryPlatform, request: Request) -> Any:
    found = await platform.list_backups(request.query_params["clusterId"])
    return {"backups": [_backup(backup) for backup in found]}


async def _create_backup(platform: MemoryPlatform, request: Request) -> Any:
    body = await _body(request)
    made = await platform.create_backup(body["clusterId"], display_name=body["displayName"])
    return _backup(made)


async def _get_backup(platform: MemoryPlatform, request: Request) -> Any:
    found = await platform.get_backup(_path(request, "backup"))
    if found is None:
        raise PlatformRejectedError("absent", status=404)
    return _backup(found)
