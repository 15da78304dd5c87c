"""The order of a preflight: nothing is done, and no token leaves unrecorded.

The tenant is known → the journal can take it → the plan is made → the ledger is open (so that it is
older than the token) → `issued` recorded → the token leaves.
"""

from __future__ import annotations

from dataclasses import replace

import structlog

from approvaltrail.gate import telemetry
from approvaltrail.gate.arguments import ConfirmArguments
from approvaltrail.gate.attempt import PlanSource, Preflight
from approvaltrail.gate.caller import Caller
from approvaltrail.gate.effects import Effects
from approvaltrail.gate.errors import (
    LedgerNotReadyError,
    NotRecordedError,
    PlanError,
    PlanUnavailableError,
    TenantRequiredError,
)
from approvaltrail.gate.means import Means, ledger_reason, make_plan
from approvaltrail.gate.plan import Plan, plan_hash
from approvaltrail.gate.refusals import refusal
from approvaltrail.gate.render import preflight_text
from approvaltrail.gate.tokens import Claims, mint, new_nonce
from approvaltrail.gate.tools import Tool
from approvaltrail.schemas import Reason, RecorderUnavailableError
from approvaltrail.schemas.bounds import TENANT

_log = structlog.get_logger(__name__)


class Issuing:
    """Issues tokens, under one way of waiting."""

    def __init__(self, means: Means, effects: Effects) -> None:
        self._means = means
        self._effects = effects

    async def preflight(
        self, tool: Tool, source: PlanSource, caller: Caller, arguments: ConfirmArguments
    ) -> Preflight:
        """Make the plan, record the issuance, and only then let the token out."""
        self._check_tenant(caller)
        self._check_recordable(tool, caller)
        plan = await self._plan_to_show(tool, source)
        if tool.ledgered:
            await self._open_ledger()
        claims = self._new_claims(tool, caller, plan)
        token = mint(claims, self._means.keys)
        event_id = self._means.new_id()
        event = self._means.told(telemetry.issued(event_id, tool, caller, claims, plan, token))
        try:
            await self._effects.record(event)
        except RecorderUnavailableError as error:
            raise self._not_issued(tool, caller) from error
        lifetime = self._means.lifetime
        return Preflight(
            text=preflight_text(
                plan, token, lifetime, works_once=tool.ledgered, arguments=arguments
            ),
            token=token,
            plan=plan,
            plan_hash=claims.plan_hash,
            nonce=claims.nonce,
            issued_at=claims.issued_at,
            expires_at=claims.expires_at,
            single_use=tool.ledgered,
            event_id=event_id,
        )

    def _check_tenant(self, caller: Caller) -> None:
        if self._means.tenant_required and not caller.tenant:
            text = "Refused: no tenant is known for this call, and a remote gate issues for one."
            raise TenantRequiredError(replace(refusal(Reason.WRONG_TENANT), text=text))
        if caller.tenant is not None and len(caller.tenant) > TENANT:
            text = f"Refused: the tenant's name is longer than {TENANT} characters."
            raise TenantRequiredError(replace(refusal(Reason.WRONG_TENANT), text=text))

    def _check_recordable(self, tool: Tool, caller: Caller) -> None:
        try:
            self._means.recorder.check()
        except RecorderUnavailableError as error:
            raise self._not_issued(tool, caller) from error

    def _not_issued(self, tool: Tool, caller: Caller) -> NotRecordedError:
        event = self._means.told(
            telemetry.not_issued(self._means.new_id(), self._means.now(), tool, caller)
        )
        self._means.recorder.count_unrecorded(event)
        return NotRecordedError(refusal(Reason.NOT_RECORDED, recorded=False))

    async def _plan_to_show(self, tool: Tool, source: PlanSource) -> Plan:
        try:
            return await make_plan(self._effects, tool, source)
        except PlanError:
            raise
        except Exception as error:
            _log.warning("plan_unavailable", tool=tool.name, error=type(error).__name__)
            refused = replace(refusal(Reason.PLAN_UNAVAILABLE), cause=error)
            raise PlanUnavailableError(refused) from error

    async def _open_ledger(self) -> None:
        ledger = self._means.ledger
        try:
            await self._effects.ask(ledger.prepare, blocks=ledger.blocks)
        except Exception as error:
            _log.error("ledger_failed", error=type(error).__name__)
            raise LedgerNotReadyError(refusal(ledger_reason(error))) from error

    def _new_claims(self, tool: Tool, caller: Caller, plan: Plan) -> Claims:
        now = self._means.now()
        return Claims(
            nonce=new_nonce(self._means.random),
            tool=tool.name,
            target=plan.target,
            tenant=caller.tenant,
            plan_hash=plan_hash(plan),
            issued_at=now,
            expires_at=now + self._means.lifetime,
            key_id=self._means.keys.signing.key_id,
        )
