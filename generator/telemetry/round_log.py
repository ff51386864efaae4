"""The log of rounds: logs a problem or finding once when it appears and once when it goes."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from generator.reconcile.round_results import RoundOutcome
from runtime.transition_log import TransitionLog
from topology.model.errors import ParseError
from topology.model.facts import Finding, Severity

log = logging.getLogger(__name__)


class RoundLog:
    """Logs what changed from one round to the next."""

    def __init__(self) -> None:
        """Start with an empty memory, so the first round logs all that it finds."""
        self._is_known: bool | None = None
        self._problem_log = TransitionLog(log, "problem", level=logging.WARNING)
        self._info_log = TransitionLog(log, "finding")
        self._warning_log = TransitionLog(log, "finding", level=logging.WARNING)

    def on_round(self, outcome: RoundOutcome) -> None:
        """Log the changes of a round; a failed round changes nothing."""
        if outcome.is_failed:
            return
        self._log_knowledge(outcome.why_unknown)
        self._log_findings(outcome.all_findings)
        self._log_problems(outcome.problems)

    def _log_problems(self, problems: Iterable[ParseError]) -> None:
        self._problem_log.update({str(problem): {"problem": str(problem)} for problem in problems})

    def _log_knowledge(self, why_unknown: str) -> None:
        is_known = not why_unknown
        if is_known is self._is_known:
            return
        self._is_known = is_known
        if is_known:
            log.info("fabric known")
        else:
            log.warning("fabric unknown, nothing is written", extra={"reason": why_unknown})

    def _log_findings(self, findings: Iterable[Finding]) -> None:
        """Log new and gone findings. The key excludes the message, which may contain an age."""
        for transitions, is_info in ((self._info_log, True), (self._warning_log, False)):
            transitions.update(
                {
                    (finding.kind, finding.device, finding.port): {
                        "kind": finding.kind.value,
                        "device": finding.device,
                        "port": finding.port,
                        "advice": finding.message,
                    }
                    for finding in findings
                    if (finding.severity is Severity.INFO) is is_info
                }
            )
