"""The order of a confirm, written once.

verify → the journal can take it → mint the event id → claim (its id is that event's) → `accepted`
recorded → execute → `completed` recorded. Whatever fails before `execute` refuses, and every
attempt that is decided leaves exactly one event, or is counted where none can be recorded.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

import structlog

from approvaltrail.gate import telemetry
from approvaltrail.gate.attempt import Acceptance, Attempt, Confirmed, Execute, T
from approvaltrail.gate.effects import Effects
from approvaltrail.gate.errors import OutcomeUnknownError
from approvaltrail.gate.ledger.protocol import AlreadySpent, Claim, Forgotten, PredatesLedger
from approvaltrail.gate.means import Means, ledger_reason, make_plan
from approvaltrail.gate.plan import plan_hash
from approvaltrail.gate.refusals import Refusal, refusal
from approvaltrail.gate.verify import Failed, Verified, check_plan, check_token
from approvaltrail.schemas import ApprovalEvent, Outcome, Reason, RecorderUnavailableError

_log = structlog.get_logger(__name__)
_INTERRUPTED: Final = "interrupted"


class Confirming:
    """Decides on presented tokens, under one way of waiting."""

    def __init__(self, means: Means, effects: Effects) -> None:
        self._means = means
        self._effects = effects

    async def confirm(self, attempt: Attempt, execute: Execute[T]) -> Confirmed[T] | Refusal:
        """Accept, execute, and record how it ended; an error of `execute` comes through."""
        acceptance = await self.accept(attempt)
        if isinstance(acceptance, Refusal):
            return acceptance
        try:
            result = await self._effects.call(execute, acceptance.plan)
        except GeneratorExit:  # the event loop let go of this call: nothing can be awaited now
            self._complete_now(acceptance)
            raise
        except OutcomeUnknownError as error:
            await self.complete(acceptance, Outcome.UNKNOWN, _kind(error.__cause__ or error))
            raise
        except Exception as error:
            await self.complete(acceptance, Outcome.FAILED, _kind(error))
            raise
        except BaseException:  # a cancellation, Ctrl-C, an exit: the work was cut off somewhere
            await self.complete(acceptance, Outcome.UNKNOWN, _INTERRUPTED)
            raise
        recorded = await self.complete(acceptance, Outcome.SUCCEEDED)
        return Confirmed(
            result=result,
            plan=acceptance.plan,
            event_id=acceptance.event_id,
            completion_recorded=recorded,
        )

    async def verify(self, attempt: Attempt) -> Verified | Refusal:
        """Check everything, the ledger too, and spend nothing; a failure is recorded."""
        verdict = await self._verify(attempt)
        if isinstance(verdict, Failed):
            return await self._refuse(attempt, verdict)
        if not attempt.tool.ledgered:
            return verdict
        claims, ledger = verdict.claims, self._means.ledger
        try:
            spent = await self._effects.ask(
                lambda: ledger.is_spent(claims.nonce, claims.issued_at), blocks=ledger.blocks
            )
        except Exception as error:  # noqa: BLE001 - a ledger fails closed, whatever it raises
            return await self._refuse(attempt, _ledger_failure(verdict, error))
        if spent is None:
            return verdict
        return await self._refuse_spent(attempt, verdict, spent, self._means.new_id())

    async def accept(self, attempt: Attempt) -> Acceptance | Refusal:
        """Verify, spend and record the acceptance; the caller must then execute, once."""
        verdict = await self._verify(attempt)
        if isinstance(verdict, Failed):
            return await self._refuse(attempt, verdict)
        try:
            self._means.recorder.check()
        except RecorderUnavailableError:
            return self._unrecorded(attempt, verdict, self._means.new_id(), spent_now=False)
        answer, cancelled = await self._effects.uninterrupted(self._spend(attempt, verdict))
        if cancelled:
            if isinstance(answer, Acceptance):
                await self.complete(answer, Outcome.FAILED, "cancelled before execution")
            raise asyncio.CancelledError
        return answer

    async def complete(
        self, acceptance: Acceptance, outcome: Outcome, detail: str | None = None
    ) -> bool:
        """Record how the work ended; False where it cannot be recorded, which undoes nothing."""
        try:
            await self._effects.record(self._completed(acceptance, outcome, detail))
        except RecorderUnavailableError:
            _log_unrecorded(acceptance, outcome)
            return False
        return True

    def _complete_now(self, acceptance: Acceptance) -> None:
        event = self._completed(acceptance, Outcome.UNKNOWN, _INTERRUPTED)
        try:
            self._means.recorder.record_sync(event)
        except RecorderUnavailableError:
            _log_unrecorded(acceptance, Outcome.UNKNOWN)

    def _completed(
        self, acceptance: Acceptance, outcome: Outcome, detail: str | None
    ) -> ApprovalEvent:
        return self._means.told(
            telemetry.completed(
                self._means.new_id(), self._means.now(), acceptance, outcome, detail
            )
        )

    async def _verify(self, attempt: Attempt) -> Verified | Failed:
        caller, tool, means = attempt.caller, attempt.tool, self._means
        claims = check_token(
            attempt.token, means.keys, self._means.now(), tenant=caller.tenant, tool=tool.name
        )
        if isinstance(claims, Failed):
            return claims
        if means.tenant_required and not caller.tenant:
            return Failed(reason=Reason.WRONG_TENANT, claims=claims)
        try:
            plan = await make_plan(self._effects, tool, attempt.plan)
        except Exception as error:  # noqa: BLE001 - the server's own look-up may raise anything
            _log.warning("plan_unavailable", tool=tool.name, error=_kind(error))
            return Failed(
                reason=Reason.PLAN_UNAVAILABLE, claims=claims, detail=_kind(error), cause=error
            )
        return check_plan(claims, plan, attempt.confirm_target)

    async def _spend(self, attempt: Attempt, verified: Verified) -> Acceptance | Refusal:
        if (failed := self._gone_stale(verified)) is not None:
            return await self._refuse(attempt, failed)
        event_id, spent = self._means.new_id(), attempt.tool.ledgered
        if spent and (stopped := await self._claim(attempt, verified, event_id)) is not None:
            return stopped
        if (failed := self._gone_stale(verified)) is not None:
            return await self._refuse(attempt, failed, event_id, spent_now=spent)
        accepted_at = self._means.now()
        event = self._means.told(telemetry.accepted(event_id, accepted_at, attempt, verified))
        try:
            await self._effects.record(event)
        except RecorderUnavailableError:
            return self._unrecorded(attempt, verified, event_id, spent_now=spent)
        return Acceptance(
            attempt=attempt, verified=verified, event_id=event_id, accepted_at=accepted_at
        )

    async def _claim(self, attempt: Attempt, verified: Verified, event_id: str) -> Refusal | None:
        claims, ledger = verified.claims, self._means.ledger
        claim = Claim(
            nonce=claims.nonce,
            claim_id=event_id,
            issued_at=claims.issued_at,
            expires_at=claims.expires_at,
            tool=attempt.tool.name,
        )
        try:
            answer = await self._effects.ask(lambda: ledger.claim(claim), blocks=ledger.blocks)
        except Exception as error:  # noqa: BLE001 - a ledger fails closed, whatever it raises
            return await self._refuse(attempt, _ledger_failure(verified, error), event_id)
        if isinstance(answer, AlreadySpent | PredatesLedger):
            return await self._refuse_spent(attempt, verified, answer, event_id)
        if isinstance(answer, Forgotten):  # it expired by a clock other than ours of this moment
            return await self._refuse(attempt, _failed(verified, Reason.EXPIRED), event_id)
        return None

    def _gone_stale(self, verified: Verified) -> Failed | None:
        """Look again at what may have changed while a look-up or the ledger was slow."""
        if self._means.now() >= verified.claims.expires_at:
            return _failed(verified, Reason.EXPIRED)
        if plan_hash(verified.plan) != verified.plan_hash:
            return _failed(verified, Reason.PLAN_CHANGED)
        return None

    async def _refuse_spent(
        self,
        attempt: Attempt,
        verified: Verified,
        spent: AlreadySpent | PredatesLedger,
        event_id: str,
    ) -> Refusal:
        if isinstance(spent, PredatesLedger):
            return await self._refuse(attempt, _failed(verified, Reason.PREDATES_LEDGER), event_id)
        event = self._means.told(
            telemetry.replayed(event_id, self._means.now(), attempt, verified, spent)
        )
        return await self._refuse_with(event, Reason.ALREADY_USED, spent_now=False)

    async def _refuse(
        self,
        attempt: Attempt,
        failed: Failed,
        event_id: str | None = None,
        *,
        spent_now: bool = False,
    ) -> Refusal:
        event = self._means.told(
            telemetry.refused(event_id or self._means.new_id(), self._means.now(), attempt, failed)
        )
        answer = await self._refuse_with(event, failed.reason, spent_now=spent_now)
        return answer if failed.cause is None else replace(answer, cause=failed.cause)

    async def _refuse_with(
        self, event: ApprovalEvent, reason: Reason, *, spent_now: bool
    ) -> Refusal:
        try:
            await self._effects.record(event)
            recorded = True
        except RecorderUnavailableError:
            self._means.recorder.count_unrecorded(event)
            recorded = False
        return refusal(reason, event_id=event.event_id, recorded=recorded, spent_now=spent_now)

    def _unrecorded(
        self, attempt: Attempt, verified: Verified, event_id: str, *, spent_now: bool
    ) -> Refusal:
        failed = _failed(verified, Reason.NOT_RECORDED)
        event = self._means.told(telemetry.refused(event_id, self._means.now(), attempt, failed))
        self._means.recorder.count_unrecorded(event)
        return refusal(Reason.NOT_RECORDED, event_id=event_id, recorded=False, spent_now=spent_now)


def _kind(error: BaseException) -> str:
    return type(error).__name__


def _log_unrecorded(acceptance: Acceptance, outcome: Outcome) -> None:
    _log.error(
        "completion_not_recorded",
        acceptance_id=acceptance.event_id,
        nonce=acceptance.verified.claims.nonce,
        outcome=outcome.value,
    )


def _failed(verified: Verified, reason: Reason, detail: str | None = None) -> Failed:
    return Failed(
        reason=reason,
        claims=verified.claims,
        plan=verified.plan,
        plan_hash=verified.plan_hash,
        detail=detail,
    )


def _ledger_failure(verified: Verified, error: Exception) -> Failed:
    _log.error("ledger_failed", error=_kind(error))
    return _failed(verified, ledger_reason(error), _kind(error))
