"""The metrics page, by real scrapes of a real port."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families

from generator.jobs.gang_ranks import audit_gang
from generator.jobs.rank_order import TreePlaces
from generator.objects.pod_ranks import PodRank
from generator.objects.pods import BoundPod
from generator.objects.reservation import ReservationPhase
from generator.reconcile.round_results import EventResult, QueryResult, RoundOutcome
from generator.reservations.records import ReservedTotals
from generator.telemetry.metrics import PREFIX, GeneratorMetrics, LeadershipSample
from runtime.http import PageServer
from runtime.values import Address
from tests.generator.telemetry.outcomes import BUSY, SNAPSHOT, TREE
from tests.golden import Golden
from topology.model.facts import FindingKind

NAMES = Path(__file__).with_name("metrics.txt")
NOW = datetime(2026, 11, 5, 10, tzinfo=UTC)
VIEW = LeadershipSample(is_leader=True, transitions=3, watches={"nodes": 2})
Values = dict[tuple[str, ...], float]


@pytest.fixture
def metrics() -> GeneratorMetrics:
    return GeneratorMetrics(version="1.2.3", now=lambda: NOW)


@pytest.fixture
def port(metrics: GeneratorMetrics) -> Iterator[PageServer]:
    server = PageServer(Address("127.0.0.1", 0), {"/metrics": metrics.render_page})
    yield server
    server.stop()


def scrape(port: PageServer, accept: str = "") -> tuple[str, str]:
    """Return the page and its content type."""
    connection = http.client.HTTPConnection(*port.address, timeout=30)
    connection.request("GET", "/metrics", headers={"Accept": accept})
    answer = connection.getresponse()
    assert answer.status == 200
    body = answer.read().decode()
    connection.close()
    return body, answer.headers["Content-Type"]


def values(port: PageServer, name: str) -> Values:
    """Return the samples of one of our metrics by label values, in the order of the labels."""
    families = text_string_to_metric_families(scrape(port)[0])
    return {
        tuple(sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
        if sample.name == f"{PREFIX}_{name}"
    }


def test_it_keeps_every_name_and_meaning(
    metrics: GeneratorMetrics, port: PageServer, golden: Golden
) -> None:
    metrics.add_cluster_metrics(lambda: VIEW)
    families = list(text_string_to_metric_families(scrape(port)[0]))
    ours = [one for one in families if one.name.startswith(f"{PREFIX}_")]
    lines = [f"{one.name} {one.type}: {one.documentation}" for one in ours]
    golden.check(NAMES, "\n".join([*sorted(lines), ""]))
    others = {one.name.partition("_")[0] for one in families if one not in ours}
    assert others == {"process"}


def test_it_shows_zero_before_anything_happens(port: PageServer) -> None:
    assert values(port, "reports") == {
        ("fresh",): 0,
        ("stale",): 0,
        ("refused",): 0,
        ("silent",): 0,
    }
    assert set(values(port, "fabric_findings")) == {(kind.value,) for kind in FindingKind}
    assert values(port, "placement_queries_total") == {(one.value,): 0 for one in QueryResult}
    assert values(port, "events_total") == {(one.value,): 0 for one in EventResult}
    assert values(port, "last_success_timestamp_seconds") == {(): 0}
    assert values(port, "build_info") == {("1.2.3",): 1}
    assert values(port, "domain_nodes") == {}


def test_it_shows_the_outcome_of_a_round(metrics: GeneratorMetrics, port: PageServer) -> None:
    metrics.on_round(BUSY)
    assert values(port, "reports")[("fresh",)] == 4
    assert values(port, "reports")[("silent",)] == 1
    assert values(port, "fabric_findings")[("duplicate-id",)] == 1
    assert values(port, "nodes") == {("placed",): 4, ("unplaced",): 0}
    assert values(port, "hypernodes") == {("1",): 2, ("2",): 1}, "foreign ones do not count"
    assert values(port, "condition") == {("Ready",): 0, ("Degraded",): 0, ("ChangeBlocked",): 1}
    assert values(port, "held_actions") == {("create",): 1, ("update",): 2, ("delete",): 3}
    assert values(port, "tree_generation") == {(): 7}
    assert values(port, "reconcile_actions_total") == {
        ("create", "done"): 1,
        ("delete", "failed"): 1,
    }
    assert values(port, "reconcile_duration_seconds_count") == {(): 1}
    assert values(port, "reconcile_duration_seconds_sum") == {(): 0.25}
    assert values(port, "last_success_timestamp_seconds") == {(): NOW.timestamp()}


def test_it_sums_the_crossings_of_all_gangs_by_tier(
    metrics: GeneratorMetrics, port: PageServer
) -> None:
    places = TreePlaces(TREE)
    audits = {
        gang: audit_gang(
            places,
            [
                BoundPod(gang, node, None, {}, f"w{rank}", PodRank(indices=(rank,)))
                for rank, node in enumerate(nodes)
            ],
        )
        for gang, nodes in (("ml/a", ["a1", "b1", "a2", "b2"]), ("ml/b", ["a1", "b1"]))
    }
    metrics.on_round(replace(BUSY, gang_ranks=audits | {"ml/unknown": None}))
    found = values(port, "gang_rank_crossings")
    assert (found["now", "1"], found["fewest", "1"]) == (6, 4)
    assert len(found) == 2 * len(TREE.tiers)
    metrics.on_round(BUSY)
    assert set(values(port, "gang_rank_crossings").values()) == {0}


def test_it_shows_capacity_by_domain_and_never_by_node(
    metrics: GeneratorMetrics, port: PageServer
) -> None:
    metrics.on_round(BUSY)
    assert values(port, "domain_nodes") == {
        ("leaf-1", "1"): 2,
        ("leaf-2", "1"): 2,
        ("spine", "2"): 4,
    }
    capacity = values(port, "domain_capacity")
    gpus = {key[0]: value for key, value in capacity.items() if key[1] == "nvidia.com/gpu"}
    assert gpus == {"leaf-1": 16, "leaf-2": 16, "spine": 32}
    usage = values(port, "domain_usage")
    assert usage["leaf-1", "nvidia.com/gpu", "1"] == 8
    assert usage["leaf-2", "nvidia.com/gpu", "1"] == 0
    assert usage["spine", "nvidia.com/gpu", "2"] == 8
    assert {key[1] for key in usage} == {"slots", "nvidia.com/gpu", "example.com/nic"}
    page = scrape(port)[0]
    assert not [line for line in page.splitlines() if any(node in line for node in ('"a1"', "b2"))]


def test_it_shows_the_capacity_of_a_few_devices_only(
    metrics: GeneratorMetrics, port: PageServer
) -> None:
    specs = tuple(
        replace(spec, capacity={f"x.io/{at}": 1 for at in range(9)}) for spec in SNAPSHOT.specs
    )
    names = tuple(sorted(specs[0].capacity))
    many = replace(SNAPSHOT, specs=specs, resources=names, free=SNAPSHOT.free[[0] * 9])
    metrics.on_round(replace(BUSY, snapshot=many))
    resources = {resource for _, resource, _ in values(port, "domain_capacity")}
    assert resources == {"x.io/0", "x.io/1", "x.io/2", "x.io/3"}


def test_it_keeps_the_previous_values_after_a_failed_round(
    metrics: GeneratorMetrics, port: PageServer
) -> None:
    metrics.on_round(BUSY)
    metrics.on_round(RoundOutcome(1.0, is_failed=True))
    assert values(port, "tree_generation") == {(): 7}
    assert values(port, "reconcile_duration_seconds_count") == {(): 2}


def test_it_counts_queries_requests_and_events(metrics: GeneratorMetrics, port: PageServer) -> None:
    metrics.on_query(QueryResult.PLACED, 0.002)
    metrics.on_query(QueryResult.REFUSED, 0.5)
    for code in (200, 200, 409, 0):
        metrics.on_request(code)
    metrics.on_event(EventResult.DROPPED)
    assert values(port, "placement_queries_total")[("placed",)] == 1
    assert values(port, "placement_query_duration_seconds_count") == {(): 2}
    assert values(port, "api_requests_total") == {("200",): 2, ("409",): 1, ("none",): 1}
    assert values(port, "events_total")[("dropped",)] == 1


def test_it_shows_leadership_and_watches_of_the_replica(
    metrics: GeneratorMetrics, port: PageServer
) -> None:
    assert values(port, "leader") == {}
    metrics.add_cluster_metrics(lambda: VIEW)
    assert values(port, "leader") == {(): 1}
    assert values(port, "lease_transitions_total") == {(): 3}
    assert values(port, "watch_restarts_total") == {("nodes",): 2}


def test_it_serves_openmetrics_on_request(metrics: GeneratorMetrics, port: PageServer) -> None:
    metrics.on_round(BUSY)
    page, content_type = scrape(port, "application/openmetrics-text;version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    families = parse_openmetrics(page)  # type: ignore[no-untyped-call]  # the library's
    assert f"{PREFIX}_reports" in {one.name for one in families}


def test_it_shows_reserved_capacity(metrics: GeneratorMetrics, port: PageServer) -> None:
    states = ("reserved", "confirmed", "released", "expired")
    assert values(port, "reservations") == {(state,): 0 for state in states}
    assert values(port, "reserved_capacity") == {}
    amounts = {"slots": 3, "cpu": 9, "memory": 1} | {f"d.com/{at}": at for at in range(9)}
    metrics.add_reservation_metrics(
        lambda: ReservedTotals({ReservationPhase.CONFIRMED: 2}, amounts)
    )
    assert values(port, "reservations")[("confirmed",)] == 2
    devices = {(f"d.com/{at}",): at for at in range(4)}
    assert values(port, "reserved_capacity") == {("slots",): 3} | devices
