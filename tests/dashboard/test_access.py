"""Who may look, from where, and at what."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Mount
from tests.dashboard.conftest import Told
from tests.support.oidc_provider import CLIENT_SECRET

from approvaltrail.dashboard.__main__ import main
from approvaltrail.dashboard.access.binding import check_address
from approvaltrail.dashboard.access.database_user import check_database_user
from approvaltrail.dashboard.access.guard import Guard
from approvaltrail.dashboard.access.headers import SecurityHeaders, content_policy, front_page
from approvaltrail.dashboard.access.masking import masked, masked_answer
from approvaltrail.dashboard.access.provider import Provider
from approvaltrail.dashboard.access.session import SESSION_COOKIE, Sessions
from approvaltrail.dashboard.access.settings import AccessSettings
from approvaltrail.dashboard.access.sign_in import SignIn
from approvaltrail.dashboard.access.targets import safe_target
from approvaltrail.dashboard.access.viewer import Claims, Role, viewer_of
from approvaltrail.dashboard.errors import (
    AccessRefusedError,
    AddressRefusedError,
    WritingUserRefusedError,
)
from approvaltrail.dashboard.launch import options
from approvaltrail.schemas.errors import SettingsError
from approvaltrail.store.answers import TenantScope, TimeRange
from approvaltrail.store.connection import open_store
from approvaltrail.store.queries import Queries

KEY = "k" * 43
EVERYTHING = TenantScope.everything()
SIGN_IN = {
    "oidc_issuer": "https://id.example.com/realms/a",
    "oidc_client_id": "approvaltrail",
    "oidc_client_secret": CLIENT_SECRET,
    "dashboard_url": "https://trail.example.com/audit",
}


def settings(**changed: Any) -> AccessSettings:
    return AccessSettings.from_environment(**SIGN_IN | changed)


def claims(now: float = 1_000, **token: Any) -> Claims:
    values = {"sub": "s", "exp": now + 600, "email": "ana@corp.example", "roles": "investigator"}
    return Claims.of(values | token, settings(oidc_tenant_claim="tenant"), now)


# Where it listens


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.0.1", "::1", "localhost"])
def test_this_machine_needs_no_sign_in(address: str) -> None:
    """Loopback is the default, and open to whoever is on the machine."""
    check_address(address, AccessSettings())


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.0.0.7", "trail.example.com"])
def test_any_other_address_needs_sign_in_or_a_word(address: str) -> None:
    """Inside a container too: only sign-in, the setting or the flag opens another address."""
    with pytest.raises(AddressRefusedError, match="APPROVALTRAIL_DASHBOARD_ALLOW_OPEN"):
        check_address(address, AccessSettings())
    check_address(address, settings())
    check_address(address, AccessSettings(dashboard_allow_open=True))
    check_address(address, AccessSettings(), allow_open=True)


def test_the_command_names_what_it_refuses(
    database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--host` and `--address` are one; a refused start ends with code 2 and says what to do."""
    monkeypatch.setenv("APPROVALTRAIL_DASHBOARD_DSN", database)
    for flag in ("--host", "--address"):
        assert main([flag, "0.0.0.0", "--port", "1"]) == 2
        assert "APPROVALTRAIL_DASHBOARD_ALLOW_OPEN=true" in capsys.readouterr().err
    assert main(["--host", "0.0.0.0", "--port", "1", "--allow-open"]) == 2
    assert "APPROVALTRAIL_DASHBOARD_ALLOW_WRITER=true" in capsys.readouterr().err
    monkeypatch.setenv("APPROVALTRAIL_OIDC_ISSUER", "https://id.example.com")
    assert main(["--port", "1"]) == 2
    said = capsys.readouterr().err
    assert "APPROVALTRAIL_OIDC_CLIENT_ID" in said
    assert database not in said


def test_only_known_hosts_may_be_called() -> None:
    """A name that was rebound to this machine is not answered; the public one is."""
    assert options(1, "127.0.0.1", AccessSettings())["server.allowedHosts"] == [
        "127.0.0.1",
        "localhost",
        "::1",
    ]
    there = options(1, "0.0.0.0", settings())
    assert "trail.example.com" in there["server.allowedHosts"]
    assert there["server.baseUrlPath"] == "audit"


# Settings


@pytest.mark.parametrize("name", ["oidc_issuer", "oidc_client_secret", "dashboard_url"])
def test_half_a_sign_in_is_none(name: str) -> None:
    """A sign-in that lacks a part does not start, and names what it lacks."""
    lacking = {key: value for key, value in SIGN_IN.items() if key != name}
    with pytest.raises(SettingsError, match=f"APPROVALTRAIL_{name.upper()}"):
        AccessSettings.from_environment(**lacking)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dashboard_url", "http://trail.corp.test"),
        ("dashboard_url", "https://user:pw@trail.corp.test"),
        ("dashboard_url", "https://trail.corp.test/?a=b"),
        ("dashboard_url", "trail.corp.test"),
        ("oidc_issuer", "http://id.example.com"),
        ("oidc_issuer", "file:///etc/passwd"),
        ("dashboard_session_secret", "short"),
    ],
)
def test_settings_that_would_be_weak_are_refused(name: str, value: str) -> None:
    """Sign-in over plain http, secrets in URLs and short keys: refused, never repeated."""
    with pytest.raises(SettingsError) as refused:
        settings(**{name: value})
    assert f"APPROVALTRAIL_{name.upper()}" in str(refused.value)
    assert value not in str(refused.value)


def test_secrets_come_from_files(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As container platforms mount them."""
    (tmp_path / "secret").write_text(CLIENT_SECRET + "\n")
    monkeypatch.setenv("APPROVALTRAIL_OIDC_CLIENT_SECRET_FILE", str(tmp_path / "secret"))
    found = AccessSettings.from_environment(**SIGN_IN | {"oidc_client_secret": None})
    assert found.oidc_client_secret is not None
    assert found.oidc_client_secret.get_secret_value() == CLIENT_SECRET
    assert CLIENT_SECRET not in repr(found)


# Roles and tenants


@pytest.mark.parametrize(
    ("roles", "role"),
    [
        ("investigator", Role.INVESTIGATOR),
        (["on-call"], Role.ON_CALL),
        (["on-call", "investigator", "other"], Role.INVESTIGATOR),
    ],
)
def test_a_role_comes_from_its_claim(roles: Any, role: Role) -> None:
    """One value or a list; the wider role wins."""
    assert viewer_of(claims(roles=roles), settings(), EVERYTHING).role is role


@pytest.mark.parametrize("roles", [None, [], "", "admin", ["INVESTIGATOR"], {"on-call": 1}, 7])
def test_an_unknown_role_is_refused(roles: Any) -> None:
    """Nothing is guessed: no known role, no page."""
    with pytest.raises(AccessRefusedError, match="no role that this dashboard knows"):
        viewer_of(claims(roles=roles), settings(), EVERYTHING)


def test_a_claim_may_lie_deeper() -> None:
    """A path with dots reaches into a claim, as some providers nest their roles."""
    known = settings(oidc_role_claim="realm_access.roles", oidc_on_call_values="ops, sre")
    token = {"sub": "s", "exp": 9, "realm_access": {"roles": ["sre", "x"]}}
    assert viewer_of(Claims.of(token, known, 0), known, EVERYTHING).role is Role.ON_CALL


def test_a_tenant_claim_narrows_what_is_seen() -> None:
    """One tenant, the agreed word for all, or nothing; a dashboard's own tenant holds for all."""
    known = settings(oidc_tenant_claim="tenant", oidc_all_tenants_value="*")
    assert viewer_of(claims(tenant="acme"), known, EVERYTHING).scope.tenant == "acme"
    assert viewer_of(claims(tenant=["acme"]), known, EVERYTHING).scope.tenant == "acme"
    assert viewer_of(claims(tenant="*"), known, EVERYTHING).scope.tenant is None
    only_beta = TenantScope.only("beta")
    assert viewer_of(claims(tenant="*"), known, only_beta).scope.tenant == "beta"
    with pytest.raises(AccessRefusedError, match="another tenant"):
        viewer_of(claims(tenant="acme"), known, only_beta)
    with pytest.raises(AccessRefusedError, match="names no tenant"):
        viewer_of(claims(), known, EVERYTHING)
    with pytest.raises(AccessRefusedError, match="names 2 tenants"):
        claims(tenant=["acme", "beta"])
    without = settings(oidc_tenant_claim="tenant")
    assert viewer_of(claims(tenant="*"), without, EVERYTHING).scope.tenant == "*"


# Sessions


def test_a_session_is_what_was_signed() -> None:
    """A cookie of another key, provider or shape opens nothing."""
    sessions = Sessions(KEY, settings())
    cookie = sessions.seal(claims(), 1_000)
    assert sessions.open(cookie["value"]) == claims()
    flags = {name: cookie[name] for name in ("secure", "httponly", "samesite", "path")}
    assert flags == {"secure": True, "httponly": True, "samesite": "lax", "path": "/audit"}
    assert Sessions("x" * 43, settings()).open(cookie["value"]) is None
    other = settings(oidc_issuer="https://other.example.com")
    assert Sessions(KEY, other).open(cookie["value"]) is None
    state = sessions.seal_state("abc", {"state": "abc"})
    for wrong in (None, "", "x", cookie["value"] + "x", cookie["value"][:-1], state["value"]):
        assert sessions.open(wrong) is None


def test_a_session_ends_with_the_identity_token_or_sooner() -> None:
    """The token's end counts, and the dashboard's own limit where that comes first."""
    assert claims(1_000, exp=1_060).expires_at == 1_060
    assert claims(1_000, exp=9_999_999).expires_at == 1_000 + 480 * 60


def test_however_large_the_claims_the_cookie_is_small() -> None:
    """A thousand groups and a picture in the token leave a cookie that every browser takes."""
    token = {"roles": [f"group-{n}" for n in range(1_000)] + ["investigator"]}
    token |= {"picture": "x" * 50_000, "email": "e" * 5_000, "sub": "s" * 300, "tenant": "t" * 256}
    cookie = Sessions(KEY, settings()).seal(claims(**token), 1_000)
    assert len(cookie["value"]) < 2_500


# Where a sign-in leads


@pytest.mark.parametrize(
    ("asked", "target"),
    [
        ("/audit/trail?nonce=a-b_c&range=7d", "/audit/trail?nonce=a-b_c&range=7d"),
        ("trail?nonce=x", "/audit/trail?nonce=x"),
        ("/audit/events?text=%3Cb%3E%20%26", "/audit/events?text=%3Cb%3E%20%26"),
        ("/audit", "/audit"),
        (None, "/audit/"),
        ("", "/audit/"),
        ("https://evil.example/", "/audit/"),
        ("//evil.example/", "/audit/"),
        ("/\\evil.example", "/audit/"),
        ("/audit//evil.example", "/audit/"),
        ("/audit/../admin", "/audit/"),
        ("/auditors", "/audit/"),
        ("/audit/x\r\nSet-Cookie: a=b", "/audit/"),
        ("javascript:alert(1)", "/audit/"),
    ],
)
def test_d_09_a_sign_in_leads_to_pages_of_ours(asked: str | None, target: str) -> None:
    """D-09: the page and its filters come back; another site never."""
    found = safe_target(asked, "/audit")
    assert found == target or (found.startswith("/audit/") and "://" not in found[:12])
    assert not found.startswith("//")


@given(st.text())
def test_d_09_no_text_leads_elsewhere(asked: str) -> None:
    """D-09: whatever is asked for, a browser stays on this origin, below the base path."""
    found = httpx.URL("https://trail.example.com/audit/").join(safe_target(asked, "/audit"))
    assert found.host == "trail.example.com"
    assert found.path.startswith("/audit")


# Masking


def test_addresses_are_masked_for_on_call() -> None:
    """The network is shown, and whether two are the same; an investigator sees the whole."""
    for address in ("203.0.113.9", "2001:db8::7", "::ffff:203.0.113.9", "10.0.0.1%eth0", "bogus"):
        shown = masked(address, Role.ON_CALL, b"key")
        assert shown is not None
        assert address not in shown
        assert masked(address, Role.INVESTIGATOR, b"key") == address
        assert masked(address, Role.ON_CALL, b"key") == shown
        assert masked(address, Role.ON_CALL, b"other") != shown
    assert str(masked("203.0.113.9", Role.ON_CALL)).startswith("203.0.x.x·")
    assert str(masked("2001:db8::7", Role.ON_CALL)).startswith("2001:0db8:…·")
    assert masked("203.0.113.9", Role.ON_CALL) != masked("203.0.113.8", Role.ON_CALL)
    assert masked(None, Role.ON_CALL) is None


def test_no_answer_holds_an_address_for_on_call(told: Told) -> None:
    """Trails, reuses with their differences, events and neighbours: searched whole."""
    queries = Queries(open_store(told.reader_dsn))
    span = TimeRange(told.story.events[0].occurred_at, told.now)
    stolen = str(told.reuses[-1].nonce)
    trail = queries.trail(stolen, EVERYTHING)
    answers = [
        trail,
        queries.reuses(span, EVERYTHING),
        queries.events(span, EVERYTHING, None, 1_000),
        queries.neighbours(trail.reuses[0].presentation, EVERYTHING),
        {"any": (trail,)},
    ]
    addresses = {one.client_address for one in told.story.events} | {"10.0.0.1"}
    for answer in answers:
        assert any(f"'{address}'" in repr(answer) for address in addresses)
        hidden = masked_answer(answer, Role.ON_CALL, b"k")
        assert [one for one in addresses if f"'{one}'" in repr(hidden)] == []
        assert masked_answer(answer, Role.INVESTIGATOR) is answer
    shown = masked_answer(trail, Role.ON_CALL, b"k")
    assert shown.reuses[0].differences[0].trusted == trail.reuses[0].differences[0].trusted
    assert len(shown.reuses) == len(trail.reuses)


# The guard


def guarded(known: AccessSettings, now: float = 1_000) -> httpx.AsyncClient:
    """Serve an application that says yes to everything, behind guard and headers."""

    async def served(scope: Any, receive: Any, send: Any) -> None:
        await PlainTextResponse("data")(scope, receive, send)

    sign_in = None
    if known.sign_in:
        sign_in = SignIn(
            settings=known,
            scope=EVERYTHING,
            sessions=Sessions(KEY, known),
            provider=Provider(known),
        )
    app = Starlette(
        routes=[Mount("/", app=served)],
        middleware=[
            Middleware(
                SecurityHeaders,
                base_path=known.base_path,
                policy=content_policy(front_page()),
                https=known.cookies_secure,
            ),
            Middleware(Guard, base_path=known.base_path, sign_in=sign_in, clock=lambda: now),
        ],
    )
    transport = httpx.ASGITransport(app)
    return httpx.AsyncClient(transport=transport, base_url="https://trail.example.com")


def session(**token: Any) -> dict[str, str]:
    cookie = Sessions(KEY, settings()).seal(claims(**token), 1_000)
    return {"cookie": f"{SESSION_COOKIE}={cookie['value']}"}


HTML = {"accept": "text/html,*/*;q=0.8"}


async def test_a_page_asks_for_sign_in_and_data_is_refused() -> None:
    """Without a session a page leads to the sign-in and back, and everything else is 401."""
    client = guarded(settings())
    page = await client.get("/audit/trail?nonce=x&range=7d", headers=HTML)
    assert page.status_code == 303
    assert page.headers["location"] == "/audit/signin?to=%2Faudit%2Ftrail%3Fnonce%3Dx%26range%3D7d"
    for path in ("/audit/media/abc.zip", "/audit/_stcore/host-config", "/audit/_stcore/stream"):
        assert (await client.get(path)).status_code == 401


async def test_what_is_the_same_for_everybody_is_open() -> None:
    """The health check, the sign-in and the front end's own files need no session."""
    client = guarded(settings())
    for path in ("_stcore/health", "static/js/index.js", "signin", "oauth2callback", "favicon.png"):
        assert (await client.get(f"/audit/{path}")).text == "data"


async def test_a_session_opens_pages_until_it_ends() -> None:
    """Each request is held to the session's end, and to the roles that are known now."""
    assert (await guarded(settings()).get("/audit/", headers=session())).text == "data"
    late = guarded(settings(), now=1_600)
    answer = await late.get("/audit/events?a=b", headers=HTML | session())
    assert (answer.status_code, answer.headers["location"][:14]) == (303, "/audit/signin?")
    renamed = guarded(settings(oidc_investigator_values="detective"))
    refused = await renamed.get("/audit/", headers=HTML | session())
    assert refused.status_code == 403
    assert "You may not look at this" in refused.text


@pytest.mark.parametrize("known", [settings(), AccessSettings()], ids=["sign-in", "open"])
async def test_what_nobody_needs_is_closed(known: AccessSettings) -> None:
    """Driving the app by HTTP, uploads and Streamlit's metrics are there for nobody."""
    client = guarded(known)
    for path in ("agent/interact", "agent/mcp", "upload_file/x/y", "metrics"):
        answer = await client.post(f"{known.base_path}/_stcore/{path}", headers=session())
        assert answer.status_code == 404


async def test_headers_stand_on_everything() -> None:
    """Pages, refusals and errors carry them; only hashed assets may be kept by browsers."""
    client = guarded(settings())
    for path in ("/audit/", "/audit/static/x.js", "/audit/_stcore/agent", "/audit/media/x"):
        headers = (await client.get(path)).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "script-src 'self'" in policy
        script = next(part for part in policy.split("; ") if part.startswith("script-src"))
        assert "unsafe-inline" not in script
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-frame-options"] == "DENY"
        assert "max-age" in headers["strict-transport-security"]
        assert (headers.get("cache-control") == "no-store") is (path != "/audit/static/x.js")
    open_ = await guarded(AccessSettings()).get("/")
    assert "strict-transport-security" not in open_.headers


async def test_notices_escape_what_they_show() -> None:
    """A refusal shows text, whatever a provider put into it."""
    evil = "<img src=x onerror=alert(1)>"
    known = settings(oidc_role_claim=evil, oidc_investigator_values="detective")
    answer = await guarded(known).get("/audit/", headers=HTML | session())
    assert answer.status_code == 403
    assert "<img" not in answer.text
    assert "&lt;img" in answer.text


# The database user


def test_a_writing_user_is_refused_where_others_are_served(
    database: str, reader_database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """On this machine it is told; beyond it, or with sign-in, it needs a user who only reads."""
    local = AccessSettings()
    for access, address in ((settings(), "127.0.0.1"), (local, "0.0.0.0")):
        check_database_user(reader_database, access, address)
        with pytest.raises(WritingUserRefusedError, match="readonly = 1"):
            check_database_user(database, access, address)
    check_database_user(database, settings(dashboard_allow_writer=True), "0.0.0.0")
    capsys.readouterr()
    check_database_user(database, local, "127.0.0.1")
    assert "database_user_may_write" in capsys.readouterr().out
    check_database_user("http://u:p@127.0.0.1:1/x", settings(), "0.0.0.0")


def test_a_session_holds_nothing_of_the_server() -> None:
    """D-18: what is shared between visitors holds no cookie, name, tenant or role."""
    sign_in = SignIn(
        settings=settings(),
        scope=EVERYTHING,
        sessions=Sessions(KEY, settings()),
        provider=Provider(settings()),
    )
    assert {one.name for one in dataclasses.fields(sign_in)} == {
        "settings",
        "scope",
        "sessions",
        "provider",
        "clock",
    }
    before = json.dumps(repr(vars(sign_in.sessions)))
    sign_in.sessions.open(session()["cookie"].partition("=")[2])
    assert json.dumps(repr(vars(sign_in.sessions))) == before
    assert sign_in.clock is time.time
