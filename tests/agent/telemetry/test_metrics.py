"""The metrics of an agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.collection import CollectorRun, RunOutcome
from agent.collectors.probe import CollectedFacts
from agent.publish.destination import PublishOutcome
from agent.telemetry.metrics import AgentMetrics
from tests.agent.fakes import FakeClock
from tests.golden import Golden
from topology.model.errors import KubeUnavailable
from topology.model.facts import Neighbor, Port, Source

NAMES = Path(__file__).with_name("metrics.txt")


@pytest.fixture
def metrics() -> AgentMetrics:
    return AgentMetrics(version="1.2.3", clock=FakeClock())


def attempt(name: str, outcome: RunOutcome, *, num_heard: int = 0) -> CollectorRun:
    heard = tuple(Neighbor((), f"leaf{number}", (), "", Source.LLDP) for number in range(num_heard))
    facts = CollectedFacts(ports=(Port("eth0", neighbors=heard),) if heard else ())
    return CollectorRun(name, outcome, "", 0.25, facts)


def value(metrics: AgentMetrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"toponaut_agent_{name}", labels)


def test_it_keeps_its_names_and_help_texts(metrics: AgentMetrics, golden: Golden) -> None:
    families = (one for one in metrics.registry.collect() if one.name.startswith("toponaut_"))
    rows = sorted(f"{one.name} {one.type}: {one.documentation}\n" for one in families)
    golden.check(NAMES, "".join(rows))


def test_it_shows_the_outcome_of_each_collector(metrics: AgentMetrics) -> None:
    attempts = (
        attempt("lldpd", RunOutcome.OK, num_heard=3),
        attempt("nvlink", RunOutcome.NO_DATA),
        attempt("ib_sysfs", RunOutcome.FAILED, num_heard=1),
    )
    metrics.record_collection(attempts, is_good=True)
    assert value(metrics, "collector_success", collector="lldpd") == 1
    assert value(metrics, "collector_success", collector="nvlink") == 1, "no data is no failure"
    assert value(metrics, "collector_success", collector="ib_sysfs") == 0
    assert value(metrics, "collector_duration_seconds", collector="lldpd") == 0.25
    assert value(metrics, "neighbors", collector="lldpd") == 3
    assert value(metrics, "neighbors", collector="ib_sysfs") == 1, "of its last good run"


def test_it_drops_a_collector_that_no_longer_runs(metrics: AgentMetrics) -> None:
    metrics.record_collection((attempt("frames", RunOutcome.OK, num_heard=1),), is_good=True)
    metrics.record_collection((attempt("lldpd", RunOutcome.OK),), is_good=True)
    assert value(metrics, "neighbors", collector="frames") is None


def test_it_shows_when_the_node_was_last_observed(metrics: AgentMetrics) -> None:
    assert value(metrics, "last_success_timestamp_seconds") == 0
    metrics.record_collection((), is_good=True)
    good = value(metrics, "last_success_timestamp_seconds")
    metrics.record_collection((), is_good=False)
    assert value(metrics, "last_success_timestamp_seconds") == good
    assert good == FakeClock().now().timestamp()


def test_it_counts_written_reports_and_failures(metrics: AgentMetrics) -> None:
    metrics.record_publishing(
        {"n": PublishOutcome.SPEC, "n.sweep.0": PublishOutcome.STATUS, "m": PublishOutcome.NONE}
    )
    metrics.record_publishing({"n": PublishOutcome.DEFERRED})
    metrics.record_publishing({}, KubeUnavailable("away"))
    results = {
        one: value(metrics, "publishes_total", result=one)
        for one in ("spec", "status", "deferred", "failed", "none")
    }
    assert results == {"spec": 1, "status": 1, "deferred": 1, "failed": 1, "none": None}


def test_it_counts_answers_of_the_api_server(metrics: AgentMetrics) -> None:
    for code in ("200", "none", "200"):
        metrics.record_answer(code)
    assert value(metrics, "api_requests_total", code="200") == 2
    assert value(metrics, "api_requests_total", code="none") == 1


def test_it_renders_a_page_that_prometheus_parses(metrics: AgentMetrics) -> None:
    page = metrics.render("")
    assert page.content_type.startswith("text/plain; version=0.0.4")
    lines = page.body.decode().splitlines()
    assert 'toponaut_agent_build_info{version="1.2.3"} 1.0' in lines
    assert any(line.startswith("process_resident_memory_bytes ") for line in lines)
    assert not any("_created" in line for line in lines)
