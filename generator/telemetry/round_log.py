"""What rounds say to people: what stands is logged when it comes and when it goes, and no more."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from generator.observe.observation import Observation
from generator.observe.observer import why_unknown
from runtime.transition_log import TransitionLog
from topology.model.errors import ParseError
from topology.model.facts import Finding, Severity

log = logging.getLogger(__name__)


class RoundLog:
    """The memory of what was said."""

    def __init__(self) -> None:
        """Nothing was said yet."""
        self._is_known: bool | None = None
        self._problems = TransitionLog(log, "problem", level=logging.WARNING)
        self._notes = TransitionLog(log, "finding")
        self._faults = TransitionLog(log, "finding", level=logging.WARNING)

    def tell_problems(self, problems: Iterable[ParseError]) -> None:
        """Tell which came and went."""
        self._problems.update({str(one): {"problem": str(one)} for one in problems})

    def tell_knowledge(self, observation: Observation | None, plane: str) -> None:
        """Tell when the fabric becomes known, and when it is no more."""
        is_known = observation is not None and bool(observation.tree.nodes)
        if is_known is self._is_known:
            return
        self._is_known = is_known
        if is_known:
            log.info("fabric known")
        else:
            reason = why_unknown(observation, plane)
            log.warning("fabric unknown, nothing is changed", extra={"reason": reason})

    def tell_findings(self, findings: Iterable[Finding]) -> None:
        """Tell which came and went; a message may carry an age and makes no new finding."""
        for standing, is_note in ((self._notes, True), (self._faults, False)):
            standing.update(
                {
                    (one.kind, one.device, one.port): {
                        "kind": one.kind.value,
                        "device": one.device,
                        "port": one.port,
                        "advice": one.message,
                    }
                    for one in findings
                    if (one.severity is Severity.INFO) is is_note
                }
            )
