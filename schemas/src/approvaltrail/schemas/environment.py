"""Typed settings from the environment: one prefix, aliases, secrets also from files, clear errors.

Every component's settings derive from `EnvironmentSettings`. A field `broker_url` is read from
`APPROVALTRAIL_BROKER_URL`, and from its aliases where it has some. A `SecretStr` field is also read
from the file that `<NAME>_FILE` names, as container platforms mount secrets.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Self, get_args

from pydantic import AliasChoices, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from approvaltrail.schemas.errors import SettingsError

PREFIX = "APPROVALTRAIL_"


def named(*aliases: str) -> AliasChoices:
    """Name the environment variables of a field, the preferred one first."""
    return AliasChoices(*aliases)


class EnvironmentSettings(BaseSettings):
    """Base of all settings read from the environment."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        case_sensitive=False,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
        populate_by_name=True,
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the caller's signature
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read arguments, then variables, then the files that `*_FILE` variables name."""
        return init_settings, env_settings, _SecretFiles(settings_cls)

    @classmethod
    def from_environment(cls, **overrides: Any) -> Self:
        """Read the settings, or say for each wrong one what it is called and what it takes.

        Raises:
            SettingsError: one line a setting; never repeats a value.
        """
        try:
            return cls(**{name: value for name, value in overrides.items() if value is not None})
        except ValidationError as error:
            lines = [_line(cls, part) for part in error.errors(include_input=False)]
            raise SettingsError("\n".join(lines)) from None


class _SecretFiles(PydanticBaseSettingsSource):
    """Reads `SecretStr` fields from the files that `<NAME>_FILE` variables name."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        for name in variable_names(field, field_name) if _is_secret(field) else ():
            path = os.environ.get(f"{name}_FILE")
            if path is None:
                continue
            try:
                return Path(path).read_text("utf-8").rstrip("\r\n"), field_name, False
            except (OSError, UnicodeDecodeError) as error:
                raise SettingsError(
                    f"{name}_FILE: the file it names cannot be read ({type(error).__name__}); "
                    "check the path and its permissions"
                ) from None
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        found = {}
        for field_name, field in self.settings_cls.model_fields.items():
            value, key, _ = self.get_field_value(field, field_name)
            if value is not None:
                found[key] = value
        return found


def variable_names(field: FieldInfo, field_name: str) -> tuple[str, ...]:
    """Return the environment variables from which a field is read, the preferred one first."""
    alias = field.validation_alias
    if isinstance(alias, AliasChoices):
        return tuple(str(choice) for choice in alias.choices)
    return (alias if isinstance(alias, str) else f"{PREFIX}{field_name}".upper(),)


def _is_secret(field: FieldInfo) -> bool:
    return field.annotation is SecretStr or SecretStr in get_args(field.annotation)


def _line(settings: type[BaseSettings], part: Any) -> str:
    location = str(part["loc"][0]) if part["loc"] else ""
    name = location
    for field_name, field in settings.model_fields.items():
        names = variable_names(field, field_name)
        if location in {field_name, *names}:
            name = names[0]
    what = "is not set" if part["type"] == "missing" else part["msg"].removeprefix("Value error, ")
    return f"{name.upper() or settings.__name__}: {what}"
