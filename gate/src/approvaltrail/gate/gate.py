"""The gate: what an embedding server holds."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any

from approvaltrail.gate.arguments import DEFAULT_ARGUMENTS, ConfirmArguments
from approvaltrail.gate.attempt import (
    Acceptance,
    Attempt,
    Confirmed,
    Execute,
    PlanSource,
    Preflight,
    T,
)
from approvaltrail.gate.caller import Caller, nobody
from approvaltrail.gate.clock import Clock, SystemClock
from approvaltrail.gate.confirming import Confirming
from approvaltrail.gate.decorator import Decorate, decorator
from approvaltrail.gate.effects import AsyncEffects, SyncEffects, run
from approvaltrail.gate.issuing import Issuing
from approvaltrail.gate.keys import KeyRing
from approvaltrail.gate.ledger import Ledger
from approvaltrail.gate.means import Means
from approvaltrail.gate.recording import ClosedRecorder
from approvaltrail.gate.refusals import Refusal
from approvaltrail.gate.scrub import Scrubber, scrub_secrets
from approvaltrail.gate.settings import Deployment, GateSettings
from approvaltrail.gate.startup import check_ledger, check_startup, keys_of, open_ledger
from approvaltrail.gate.tokens import RandomSource
from approvaltrail.gate.tools import TOOLS, Tool, tool_named
from approvaltrail.gate.verify import Verified
from approvaltrail.schemas import EventRecorder, Outcome, new_event_id


class Gate:
    """Two steps before anything happens: a preflight that only describes, a confirm that executes.

    One gate serves all threads and tasks of a process. `caller` is asked once a call; give
    `caller=` to a call where the request's context is not at hand.

    Raises:
        StartupRefusedError: these settings, with this ledger, allow no safe start.
            A shared ledger is asked whether it is set up; if it cannot be reached, the gate starts.
    """

    def __init__(
        self,
        settings: GateSettings,
        *,
        recorder: EventRecorder,
        ledger: Ledger | None = None,
        caller: Callable[[], Caller] = nobody,
        clock: Clock | None = None,
        random: RandomSource = secrets.token_bytes,
        tools: Mapping[str, Tool] = TOOLS,
    ) -> None:
        check_startup(settings, ledger)
        recorder, clock = ClosedRecorder(recorder), clock or SystemClock()
        ledger = ledger or open_ledger(settings, clock)
        check_ledger(ledger)
        means = Means(
            keys=keys_of(settings),
            ledger=ledger,
            recorder=recorder,
            clock=clock,
            random=random,
            new_id=new_event_id,
            lifetime=settings.lifetime,
            tenant_required=settings.deployment is Deployment.REMOTE,
        )
        self._means = means
        self._caller = caller
        self._tools = tools
        waiting, blocking = AsyncEffects(recorder), SyncEffects(recorder)
        self._issuing, self._confirming = Issuing(means, waiting), Confirming(means, waiting)
        self._issuing_sync, self._confirming_sync = (
            Issuing(means, blocking),
            Confirming(means, blocking),
        )

    @classmethod
    def from_environment(
        cls,
        *,
        recorder: EventRecorder,
        caller: Callable[[], Caller] = nobody,
        ledger: Ledger | None = None,
        clock: Clock | None = None,
        tools: Mapping[str, Tool] = TOOLS,
        **overrides: Any,
    ) -> Gate:
        """Make a gate from the environment's settings; `overrides` are fields of `GateSettings`.

        Raises:
            SettingsError: a setting has no usable value.
            StartupRefusedError: the settings allow no safe start.
        """
        settings = GateSettings.from_environment(**overrides)
        return cls(
            settings, recorder=recorder, caller=caller, ledger=ledger, clock=clock, tools=tools
        )

    @property
    def keys(self) -> KeyRing:
        """The keys that sign and verify."""
        return self._means.keys

    @property
    def ledger(self) -> Ledger:
        """Where nonces are spent; its `probe` tells how it is."""
        return self._means.ledger

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools that can be called by name."""
        return self._tools

    def scrubber(self) -> Scrubber:
        """Return the structlog processor that keeps this gate's secrets and tokens out of logs."""
        return scrub_secrets(self._means.keys.secrets)

    async def preflight(
        self,
        tool: str | Tool,
        plan: PlanSource,
        *,
        caller: Caller | None = None,
        arguments: ConfirmArguments = DEFAULT_ARGUMENTS,
    ) -> Preflight:
        """Describe what the call would do and issue a token for exactly that.

        The text ends with how to confirm, in the names of `arguments`.

        Raises:
            PreflightRefusedError: no token was issued; `refusal` says why and what to do.
            PlanError: the plan breaks a rule that its maker must keep.
        """
        return await self._issuing.preflight(
            self._tool(tool), plan, caller or self._caller(), arguments
        )

    def preflight_sync(
        self,
        tool: str | Tool,
        plan: PlanSource,
        *,
        caller: Caller | None = None,
        arguments: ConfirmArguments = DEFAULT_ARGUMENTS,
    ) -> Preflight:
        """Do as `preflight`, in a thread without an event loop; `plan` must not be a coroutine."""
        caller = caller or self._caller()
        return run(self._issuing_sync.preflight(self._tool(tool), plan, caller, arguments))

    async def confirm(
        self,
        tool: str | Tool,
        plan: PlanSource,
        token: str | None,
        execute: Execute[T],
        *,
        confirm_target: str | None = None,
        caller: Caller | None = None,
    ) -> Confirmed[T] | Refusal:
        """Execute the approved plan, once, or refuse.

        Args:
            tool: the tool that is called.
            plan: the plan of this call, or what makes it; it must equal the approved one.
            token: what the caller presents.
            execute: is handed the approved plan; what it raises comes through, and the token
                stays spent. An `OutcomeUnknownError` is recorded as an unknown outcome, any
                other error as a failure.
            confirm_target: the target as the caller repeats it; None where it is not asked for.
            caller: who calls, where the gate's own `caller` cannot know.
        """
        attempt = self._attempt(tool, plan, token, confirm_target, caller)
        return await self._confirming.confirm(attempt, execute)

    def confirm_sync(
        self,
        tool: str | Tool,
        plan: PlanSource,
        token: str | None,
        execute: Execute[T],
        *,
        confirm_target: str | None = None,
        caller: Caller | None = None,
    ) -> Confirmed[T] | Refusal:
        """Do as `confirm`, in a thread without an event loop, with plain functions."""
        attempt = self._attempt(tool, plan, token, confirm_target, caller)
        return run(self._confirming_sync.confirm(attempt, execute))

    async def verify(
        self,
        tool: str | Tool,
        plan: PlanSource,
        token: str | None,
        *,
        confirm_target: str | None = None,
        caller: Caller | None = None,
    ) -> Verified | Refusal:
        """Check a token, the ledger included, without spending it; failures are recorded."""
        attempt = self._attempt(tool, plan, token, confirm_target, caller)
        return await self._confirming.verify(attempt)

    async def accept(
        self,
        tool: str | Tool,
        plan: PlanSource,
        token: str | None,
        *,
        confirm_target: str | None = None,
        caller: Caller | None = None,
    ) -> Acceptance | Refusal:
        """Spend a token at a dispatch boundary whose work is no single function.

        Execute `acceptance.plan` once, then call `complete`.
        """
        attempt = self._attempt(tool, plan, token, confirm_target, caller)
        return await self._confirming.accept(attempt)

    async def complete(self, acceptance: Acceptance, outcome: Outcome) -> bool:
        """Record how accepted work ended; False where that could not be recorded."""
        return await self._confirming.complete(acceptance, outcome)

    def confirmed(
        self,
        *,
        plan: Callable[..., Any],
        single_use: bool | None = None,
        tool: str | None = None,
        present: Callable[[Any], Any] | None = None,
        arguments: ConfirmArguments = DEFAULT_ARGUMENTS,
    ) -> Decorate:
        """Put a function behind the gate; see `approvaltrail.gate.decorator`."""
        return decorator(
            self,
            plan=plan,
            single_use=single_use,
            tool=tool,
            present=present,
            arguments=arguments,
        )

    def close(self) -> None:
        """Let go of the ledger's files."""
        self._means.ledger.close()

    def _attempt(
        self,
        tool: str | Tool,
        plan: PlanSource,
        token: object,
        confirm_target: str | None,
        caller: Caller | None,
    ) -> Attempt:
        return Attempt(
            tool=self._tool(tool),
            caller=caller or self._caller(),
            plan=plan,
            token=token,
            confirm_target=confirm_target,
        )

    def _tool(self, tool: str | Tool) -> Tool:
        return tool_named(tool, self._tools)
