"""Settings: typed, with aliases, secrets also from files, and a clear error for each."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import Field, SecretStr

from approvaltrail.schemas.environment import EnvironmentSettings, named
from approvaltrail.schemas.errors import SettingsError


class Example(EnvironmentSettings):
    """Settings as a component has them."""

    confirm_secret: SecretStr | None = Field(
        default=None, validation_alias=named("APPROVALTRAIL_CONFIRM_SECRET", "CONFIRM_SECRET")
    )
    flush_events: int = Field(default=5, ge=1)
    service: str


@pytest.fixture(autouse=True)
def _service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPROVALTRAIL_SERVICE", "tidb-mcp")


def test_the_prefixed_name_wins_over_its_alias(monkeypatch: pytest.MonkeyPatch) -> None:
    """An alias is read, and the product's own name before it."""
    monkeypatch.setenv("CONFIRM_SECRET", "from the alias")
    found = Example.from_environment().confirm_secret
    assert found is not None
    assert found.get_secret_value() == "from the alias"
    monkeypatch.setenv("APPROVALTRAIL_CONFIRM_SECRET", "from our name")
    found = Example.from_environment().confirm_secret
    assert found is not None
    assert found.get_secret_value() == "from our name"


def test_a_secret_is_read_from_the_file_that_a_variable_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A mounted secret is read without its last line break."""
    (tmp_path / "secret").write_text("from a file\n")
    monkeypatch.setenv("CONFIRM_SECRET_FILE", str(tmp_path / "secret"))
    found = Example.from_environment().confirm_secret
    assert found is not None
    assert found.get_secret_value() == "from a file"
    assert "from a file" not in repr(Example.from_environment())


def test_an_unreadable_secret_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be read is an error that names the variable."""
    monkeypatch.setenv("CONFIRM_SECRET_FILE", "/nonexistent/secret")
    with pytest.raises(SettingsError, match=r"CONFIRM_SECRET_FILE.*cannot be read"):
        Example.from_environment()


def test_every_wrong_setting_has_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """All wrong settings are reported together, by variable, without their values."""
    monkeypatch.delenv("APPROVALTRAIL_SERVICE")
    monkeypatch.setenv("APPROVALTRAIL_FLUSH_EVENTS", "sesame")
    with pytest.raises(SettingsError) as caught:
        Example.from_environment()
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("APPROVALTRAIL_FLUSH_EVENTS: ")
    assert lines[1] == "APPROVALTRAIL_SERVICE: is not set"
    assert "sesame" not in str(caught.value)


def test_an_argument_wins_over_the_environment() -> None:
    """What the caller passes counts before any variable; None passes nothing."""
    assert Example.from_environment(flush_events=9).flush_events == 9
    assert Example.from_environment(flush_events=None).flush_events == 5
