"""The seam to the cluster platform: one contract, kept in memory and over HTTP alike."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest

from approvaltrail.server.errors import (
    PlatformOutcomeError,
    PlatformRefusedError,
    PlatformRejectedError,
    PlatformSilentError,
)
from approvaltrail.server.platform import ApiKey, HttpPlatforms, Platform, Projects
from approvaltrail.server.reach import Breadth, reach_of
from approvaltrail.server.testing import MemoryPlatforms, World, fake_api
from approvaltrail.server.testing.running import addresses_at, platforms_of, serving
from approvaltrail.server.testing.world import small_world


@dataclass
class Setting:
    """A world, a key that is scoped to its one cluster, and the platform under it."""

    world: World
    key: ApiKey
    platform: Platform
    platforms: HttpPlatforms | MemoryPlatforms


@pytest.fixture(params=["memory", "http"])
async def setting(request: pytest.FixtureRequest) -> AsyncIterator[Setting]:
    """Give both implementations."""
    world, key = small_world()
    platforms = MemoryPlatforms(world) if request.param == "memory" else platforms_of(world)
    yield Setting(world, key, platforms.under(key), platforms)
    await platforms.close()


async def test_what_belongs_to_a_cluster_comes_and_goes(setting: Setting) -> None:
    """Branches, SQL users, backups and restores answer as documented."""
    platform, (cluster,) = setting.platform, setting.world.clusters
    made = await platform.create_branch(cluster, display_name="feature-1")
    assert made in await platform.list_branches(cluster)
    await platform.delete_branch(cluster, made.branch_id)
    assert made not in await platform.list_branches(cluster)
    user = await platform.create_sql_user(
        cluster, user_name="ana", role="role_readonly", password="p"
    )
    assert user.user_name.endswith(".ana")
    await platform.update_sql_user(cluster, user.user_name, role="role_admin")
    assert {"role_admin"} == {u.role for u in await platform.list_sql_users(cluster)}
    await platform.delete_sql_user(cluster, user.user_name)
    assert len(await platform.list_sql_users(cluster)) == 1
    backup = await platform.create_backup(cluster, display_name="nightly-1")
    assert backup in await platform.list_backups(cluster)
    assert await platform.get_backup(backup.backup_id) == backup
    restored = await platform.restore_backup(backup.backup_id)
    again = await platform.restore_cluster(cluster, point_in_time="2026-01-01T00:00:00+00:00")
    assert {restored, again} <= {c.cluster_id for c in (await platform.list_clusters()).clusters}


async def test_clusters_come_change_and_go(setting: Setting) -> None:
    """A created cluster is listed, renamed and deleted; what is gone is a fact."""
    platform = setting.platform
    made = await platform.create_cluster(
        display_name="fresh-1", region="regions/aws-us-east-1", spending_limit_cents=0
    )
    await platform.update_cluster(made.cluster_id, display_name="fresh-2")
    found = await platform.get_cluster(made.cluster_id)
    assert found is not None
    assert (found.display_name, found.host, found.port) == ("fresh-2", made.host, made.port)
    assert found.user_prefix == made.user_prefix
    await platform.delete_cluster(made.cluster_id)
    assert await platform.get_cluster(made.cluster_id) is None
    assert await platform.get_backup("no-such") is None
    with pytest.raises(PlatformRejectedError):
        await platform.delete_sql_user(next(iter(setting.world.clusters)), "nobody")


async def test_a_listing_goes_on_over_its_pages(setting: Setting) -> None:
    """More clusters than fit a page are told as such."""
    for number in range(60):
        setting.world.add_cluster(f"many-{number}")
    wide = setting.platforms.under(setting.world.add_key(wide=True))
    first = await wide.list_clusters()
    second = await wide.list_clusters(first.next_page)
    assert (len(first.clusters), len(second.clusters), second.next_page) == (50, 11, None)


async def test_a_narrow_key_is_refused_elsewhere(setting: Setting) -> None:
    """The platform keeps keys apart: another cluster is refused before any code of ours."""
    other = setting.world.add_cluster("other-1")
    for attempt in (
        setting.platform.get_cluster(other.cluster_id),
        setting.platform.delete_cluster(other.cluster_id),
        setting.platform.list_sql_users(other.cluster_id),
    ):
        with pytest.raises(PlatformRefusedError) as caught:
            await attempt
        assert caught.value.status == 403
    assert setting.world.performed == []


async def test_silence_is_told_from_a_refusal(setting: Setting) -> None:
    """A question without an answer changed nothing; of a change nobody knows."""
    setting.world.silent = True
    with pytest.raises(PlatformSilentError):
        await setting.platform.list_clusters()
    with pytest.raises(PlatformOutcomeError):
        await setting.platform.delete_cluster("1")


async def test_one_predicate_reads_what_a_key_reaches(setting: Setting) -> None:
    """B7: 403 on the projects is "cannot see the organisation"; the listing is the reach."""
    narrow = await reach_of(setting.platform)
    assert (narrow.projects, narrow.breadth) == (Projects.HIDDEN, Breadth.SINGLE)
    assert "one cluster: 'prod-1'" in narrow.statement()
    assert "cannot see the organisation" in narrow.statement()
    for number in range(9):
        setting.world.add_cluster(f"more-{number}")
    wide = await reach_of(setting.platforms.under(setting.world.add_key(wide=True)))
    assert (wide.projects, wide.breadth) == (Projects.VISIBLE, Breadth.SEVERAL)
    assert "WIDE: this key reaches 10 clusters" in wide.statement()
    nothing = await reach_of(setting.platforms.under(setting.world.add_key()))
    assert nothing.breadth is Breadth.NOTHING
    stranger = ApiKey(public=setting.key.public, private="not-its-private-part")
    assert (await reach_of(setting.platforms.under(stranger))).breadth is Breadth.REFUSED
    setting.world.silent = True
    assert (await reach_of(setting.platform)).breadth is Breadth.UNKNOWN


async def test_the_api_answers_on_a_port_too() -> None:
    """The same client works over a real connection, with its digest challenge."""
    world, key = small_world()
    async with serving(fake_api(world), lifespan=False) as url:
        platforms = HttpPlatforms(addresses_at(url))
        assert (await reach_of(platforms.under(key))).breadth is Breadth.SINGLE
        async with httpx.AsyncClient(auth=httpx.DigestAuth(key.public, key.private)) as http:
            answer = await http.get(f"{url}/api/v1beta/projects")
        assert (answer.status_code, answer.json()["code"]) == (403, 49900003)
        await platforms.close()


async def test_a_connection_that_was_never_made_changed_nothing() -> None:
    """What could not be sent is silence even for a change; a lost answer is not."""
    platforms = HttpPlatforms(addresses_at("http://127.0.0.1:1"), timeout_seconds=2)
    platform = platforms.under(ApiKey(public="PUBLIC0001", private="private-part"))
    with pytest.raises(PlatformSilentError):
        await platform.delete_cluster("1")
    await platforms.close()

    def lost(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("lost", request=request)

    platforms = HttpPlatforms(transport=httpx.MockTransport(lost))
    platform = platforms.under(ApiKey(public="PUBLIC0001", private="private-part"))
    with pytest.raises(PlatformOutcomeError):
        await platform.delete_cluster("1")
    with pytest.raises(PlatformSilentError):
        await platform.get_cluster("1")
    await platforms.close()
