"""When an agent is alive, started and ready."""

from __future__ import annotations

from http import HTTPStatus

import pytest

from agent.collection import CollectorRun, RunOutcome
from agent.collectors.probe import CollectedFacts
from agent.publish.destination import PublishOutcome
from agent.telemetry.health import HUNG_PERIODS, MIN_HUNG_S, STALE_PERIODS, Liveness, health_pages
from tests.agent.fakes import FakeClock
from topology.model.errors import KubeForbidden, KubeUnavailable, StoreError, TopologyError

PERIOD_S = 100.0
LATER_S = (STALE_PERIODS + 1) * PERIOD_S


class Probes:
    """The liveness of an agent, and its pages."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.vitals = Liveness(period_s=PERIOD_S, clock=self.clock)

    def collect(self, *, is_good: bool = True) -> None:
        self.vitals.record_collection((), is_good=is_good)

    def publish(self, problem: TopologyError | None = None, **changes: PublishOutcome) -> None:
        self.vitals.record_publishing(changes, problem)

    def rounds(self, number: int, problem: TopologyError | None = None) -> None:
        for _ in range(number):
            self.clock.seconds += PERIOD_S
            self.collect()
            self.publish(problem)

    def page(self, path: str) -> tuple[int, str]:
        page = health_pages(self.vitals)[path]("")
        return page.status, page.body.decode()

    def is_ok(self, path: str) -> bool:
        status, body = self.page(path)
        assert (body == "ok\n") is (status == HTTPStatus.OK)
        return status == HTTPStatus.OK


@pytest.fixture
def probes() -> Probes:
    return Probes()


def test_it_is_alive_before_it_has_started(probes: Probes) -> None:
    assert probes.is_ok("/livez")
    assert probes.page("/startupz") == (503, "the first collection has not ended\n")
    assert probes.page("/readyz") == (503, "the first collection has not ended\n")


def test_it_has_started_after_the_first_collection_with_any_outcome(probes: Probes) -> None:
    probes.collect(is_good=False)
    assert probes.is_ok("/startupz")
    assert probes.page("/readyz") == (503, "no collector works\n")


def test_it_is_ready_while_its_last_good_collection_is_fresh(probes: Probes) -> None:
    probes.collect()
    assert probes.is_ok("/readyz")
    probes.clock.seconds += LATER_S
    probes.collect(is_good=False)
    assert "the last good collection is 40" in probes.page("/readyz")[1]
    probes.collect()
    assert probes.is_ok("/readyz")


def test_it_is_not_alive_until_a_restart_if_a_mount_was_deleted(probes: Probes) -> None:
    facts = CollectedFacts()
    cut_off = CollectorRun(
        "lldpd", RunOutcome.FAILED, "was deleted", 0.1, facts, needs_restart=True
    )
    for attempts, problem in (((cut_off,), "was deleted\n"), ((), "ok\n")):
        probes.vitals.record_collection(attempts, is_good=True)
        assert probes.page("/livez")[1] == problem
    assert probes.is_ok("/readyz")


def test_it_is_ready_while_the_api_server_is_unavailable(probes: Probes) -> None:
    probes.rounds(20, KubeUnavailable("away"))
    assert probes.is_ok("/readyz")


@pytest.mark.parametrize("problem", [KubeForbidden("403"), StoreError("disk full")], ids=str)
def test_it_is_not_ready_after_its_reports_were_refused_for_long(
    probes: Probes, problem: TopologyError
) -> None:
    probes.rounds(STALE_PERIODS, problem)
    assert probes.is_ok("/readyz")
    probes.rounds(2, problem)
    assert str(problem) in probes.page("/readyz")[1]
    probes.publish(node01=PublishOutcome.DEFERRED)
    probes.publish(KubeUnavailable("away"))
    assert not probes.is_ok("/readyz"), "neither means that it was taken"
    probes.publish(node01=PublishOutcome.NONE)
    assert probes.is_ok("/readyz")


def test_it_is_not_alive_when_rounds_stop_ending(probes: Probes) -> None:
    probes.collect()
    probes.clock.seconds += MIN_HUNG_S - 10
    assert probes.is_ok("/livez")
    probes.clock.seconds += HUNG_PERIODS * PERIOD_S
    assert "no collection ended for" in probes.page("/livez")[1]
    probes.collect(is_good=False)
    assert probes.is_ok("/livez"), "what is found makes no difference"


def test_it_is_alive_for_as_long_as_a_sweep_may_take() -> None:
    clock = FakeClock()
    vitals = Liveness(period_s=PERIOD_S, clock=clock, sweeping_s=2000.0)
    clock.seconds += HUNG_PERIODS * PERIOD_S + 1900
    assert vitals.liveness_problem() == ""
    clock.seconds += 200
    assert vitals.liveness_problem() != ""
