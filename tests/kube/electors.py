"""Candidates at work, each in a thread; run as a module, one candidate in a process.

python -m tests.kube.electors KUBECONFIG NAMESPACE IDENTITY
"""

import random
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Thread
from time import monotonic, sleep

from generator.kube.credentials import load_kubeconfig
from generator.kube.elector import Elector, LeaseDurations, LeaseName
from generator.kube.transport import KubeTransport, Transport
from runtime.program import stop_signals
from runtime.retry import WaitContext
from runtime.stop import Stop
from tests.lab.wait import wait_until

LEASE = "toponaut"
QUICK = LeaseDurations(lease_s=4, renew_s=2.6, retry_s=0.2)
"""Lease durations for tests that wait for the end of a leadership."""
STEADY = LeaseDurations(lease_s=15, renew_s=10, retry_s=0.2)
"""Lease durations for tests in which leadership must last, even on a busy machine."""
JITTER = random.Random(2).uniform  # noqa: S311 - spreads retries
FIRST_DAY = datetime(1970, 1, 1, tzinfo=UTC)


class Candidate:
    """One candidate, and the callbacks that it received."""

    def __init__(
        self,
        transport: Transport,
        namespace: str,
        identity: str,
        *,
        now: datetime = FIRST_DAY,
        terms: LeaseDurations = STEADY,
    ) -> None:
        """Start the candidate."""
        self.identity = identity
        self.told: list[str] = []
        self.stop_request = Stop()
        self.elector = Elector(
            transport,
            LeaseName(namespace, LEASE, identity),
            now=lambda: now,
            pace=WaitContext(self.stop_request, monotonic, JITTER),
            durations=terms,
        )
        self.thread = Thread(target=self._run)
        self.thread.start()

    def expect(self, *told: str) -> None:
        """Wait until it received exactly these callbacks."""
        wait_until(
            lambda: "" if self.told == list(told) else str(self.told),
            deadline_s=20,
            what=f"{self.identity} is told {told}",
        )

    def renew(self, times: int) -> None:
        """Wait for some renewals."""
        wanted = self.elector.num_renewals + times
        wait_until(
            lambda: self.elector.num_renewals < wanted,
            deadline_s=20,
            what=f"{self.identity} has renewed",
        )

    def stop(self) -> None:
        """End it as a SIGTERM would."""
        self.stop_request.set()
        self.thread.join(timeout=20)
        assert not self.thread.is_alive()

    def _run(self) -> None:
        self.elector.run(
            on_gained=lambda epoch: self.told.append(f"gained {epoch}"),
            on_lost=lambda: self.told.append("lost"),
        )


@contextmanager
def standing(*candidates: Candidate) -> Iterator[None]:
    """Run candidates within the context, and check all the time that no two lead."""
    watched = Watched(candidates)
    try:
        yield
    finally:
        for candidate in candidates:
            candidate.stop()
        watched.stop()
    assert watched.most <= 1


class Watched:
    """Counts the leaders repeatedly."""

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        self.most = 0
        self._candidates = tuple(candidates)
        self._is_over = False
        self._thread = Thread(target=self._watch)
        self._thread.start()

    def stop(self) -> None:
        """End it."""
        self._is_over = True
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over:
            self.most = max(self.most, sum(one.elector.is_leader for one in self._candidates))
            sleep(0.002)


def main() -> None:
    """Run a candidate until a signal ends it."""
    file, namespace, identity = sys.argv[1:]
    with stop_signals() as wait_for_stop:
        candidate = Candidate(KubeTransport(lambda: load_kubeconfig(file)), namespace, identity)
        wait_for_stop()
        candidate.stop()


if __name__ == "__main__":
    main()
