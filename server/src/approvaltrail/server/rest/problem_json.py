"""Refusals and problems as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final, assert_never

from starlette.responses import JSONResponse

from approvaltrail.gate import Refusal
from approvaltrail.schemas import Reason
from approvaltrail.server.present import structured
from approvaltrail.server.problems import Problem

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_SECONDS: Final = 5


def problem_response(
    answer: Refusal | Problem, *, headers: dict[str, str] | None = None
) -> JSONResponse:
    """Return the answer as a problem document."""
    return document(
        status=status_of(answer.code) if isinstance(answer, Refusal) else answer.status,
        code=str(answer.code),
        detail=str(structured(answer)["text"]),
        members=structured(answer),
        headers=headers,
    )


def document(
    *,
    status: int,
    code: str,
    detail: str,
    members: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    """Return a problem document with these members beside the standard ones."""
    extra = dict(headers or {})
    if (members or {}).get("retry_safe"):
        extra["Retry-After"] = str(RETRY_AFTER_SECONDS)
    content = {
        **{key: value for key, value in (members or {}).items() if key != "text"},
        "type": f"urn:approvaltrail:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
    }
    return JSONResponse(content, status_code=status, media_type=MEDIA_TYPE, headers=extra)


def status_of(reason: Reason) -> int:  # noqa: PLR0911 - one line a class of refusals
    """Return the HTTP status of a refusal."""
    match reason:
        case Reason.MISSING_TOKEN:
            return HTTPStatus.PRECONDITION_REQUIRED
        case Reason.MALFORMED_TOKEN | Reason.BAD_SIGNATURE | Reason.UNKNOWN_KEY:
            return HTTPStatus.BAD_REQUEST
        case Reason.EXPIRED | Reason.PREDATES_LEDGER:
            return HTTPStatus.GONE
        case Reason.WRONG_TENANT | Reason.WRONG_TOOL:
            return HTTPStatus.FORBIDDEN
        case Reason.WRONG_TARGET | Reason.PLAN_CHANGED:
            return HTTPStatus.PRECONDITION_FAILED
        case Reason.TARGET_UNCONFIRMED:
            return HTTPStatus.UNPROCESSABLE_ENTITY
        case Reason.ALREADY_USED:
            return HTTPStatus.CONFLICT
        case (
            Reason.PLAN_UNAVAILABLE
            | Reason.LEDGER_UNAVAILABLE
            | Reason.LEDGER_FULL
            | Reason.NOT_RECORDED
        ):
            return HTTPStatus.SERVICE_UNAVAILABLE
        case Reason.OTHER:
            return HTTPStatus.INTERNAL_SERVER_ERROR
        case _:
            assert_never(reason)
