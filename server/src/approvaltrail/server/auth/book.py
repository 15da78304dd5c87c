"""Callers with tokens that the operator issued, kept as SHA-256: the file holds no secret.

```toml
[[caller]]
token_sha256 = "9f86d0…"
tenant = "acme"
principal = "ana@example.org"
kind = "user"
```
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from approvaltrail.schemas import PrincipalKind, bounds
from approvaltrail.schemas.errors import SettingsError
from approvaltrail.server.auth.identity import Identity

MAXIMUM_CREDENTIAL = 4_096


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    token_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    tenant: str = Field(min_length=1, max_length=bounds.TENANT)
    principal: str = Field(min_length=1, max_length=bounds.PRINCIPAL)
    kind: PrincipalKind = PrincipalKind.UNKNOWN


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    caller: list[_Entry] = Field(max_length=10_000)


class CallerBook:
    """Identifies callers by the digest of their token."""

    def __init__(self, by_digest: Mapping[str, Identity]) -> None:
        self._by_digest = dict(by_digest)

    @classmethod
    def of_tokens(cls, identities: Mapping[str, Identity]) -> CallerBook:
        """Make a book from tokens in clear, for tests and for the static token of REST."""
        return cls({_digest(token): identity for token, identity in identities.items()})

    async def identify(self, credential: str) -> Identity | None:
        """Look the credential up; what is compared is a digest, so time tells nothing of it."""
        if not credential or len(credential) > MAXIMUM_CREDENTIAL:
            return None
        return self._by_digest.get(_digest(credential))


def load_callers(path: Path) -> CallerBook:
    """Read the callers' file.

    Raises:
        SettingsError: it cannot be read or used.
    """
    name = "APPROVALTRAIL_SERVER_CALLERS"
    try:
        read = _File.model_validate(tomllib.loads(path.read_text("utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(
            f"{name}: the file cannot be read ({type(error).__name__}); check path and form"
        ) from None
    except ValidationError as error:
        places = sorted({".".join(map(str, part["loc"])) for part in error.errors()})
        raise SettingsError(f"{name}: wrong or missing: {', '.join(places)}") from None
    return CallerBook(
        {
            entry.token_sha256: Identity(
                tenant=entry.tenant, principal=entry.principal, principal_kind=entry.kind
            )
            for entry in read.caller
        }
    )


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
