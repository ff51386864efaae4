"""Requests with less common features reach the best of all placements.

`TOPONAUT_RANDOM_JOBS=5000 pytest tests/generator/placement/test_nested.py` tries that many jobs.
"""

from __future__ import annotations

import os

from hypothesis import given, settings

from generator.placement.answer import Placement
from generator.placement.engine import place
from generator.placement.request import parse_request
from tests.effort import examples
from tests.generator.placement.nested import Assignment, Job, best, jobs, priorities, traffic

MANY = int(os.environ.get("TOPONAUT_RANDOM_JOBS") or examples(50))


def reached(job: Job, placement: Placement) -> tuple[int, ...]:
    """Return the vector of an answer, from the objective that it prints."""
    found = placement.objective
    tiers = job.tiers
    is_fewest = job.spec.get("preemption") == "fewestVictims"
    histogram, domains = found["histogram"], found["domains"]
    assert isinstance(histogram, dict)
    victims = found.get("victim_priorities", {})
    assert isinstance(domains, dict)
    assert isinstance(victims, dict)
    numbers = [
        -_number(found["placed"]),
        *([found.get("victim_pods", 0)] if is_fewest else []),
        *(victims.get(str(row), 0) for row in (priorities(job) if is_fewest else ())),
        tiers.index(str(found["job_tier"])),
        tiers.index(str(found["group_tier"])),
        *(histogram.get(tier, 0) for tier in reversed(tiers)),
        found["preferred_misses"],
        found.get("node_misses", 0),
        *(domains[tier] for tier in reversed(tiers[:-1])),
    ]
    return tuple(_number(number) for number in numbers)


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value


@settings(max_examples=MANY, deadline=None)
@given(job=jobs())
def test_it_reaches_the_best_of_all_placements(job: Job) -> None:
    placement = place(job.snapshot(), parse_request(job.document()))
    expected = best(job)
    assert placement.is_feasible == (expected is not None)
    if expected is None:
        return
    assert reached(job, placement) == expected
    if "traffic" in placement.objective:
        rows: Assignment = {
            name: tuple(sorted(node for node in nodes if node is not None))
            for name, nodes in placement.assignment.items()
        }
        assert placement.objective["traffic"] == traffic(job, rows)
