"""Liveness, startup and readiness of the server."""

from __future__ import annotations

from collections.abc import Mapping

from generator.server.endpoints import MIN_LIMIT_S, MISSED_ROUNDS, Heartbeat, build_health_pages
from runtime.http import Render

PERIOD_S = 100.0


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def pages_of(heart: Heartbeat, *, ready: str = "", dead: str = "") -> Mapping[str, Render]:
    return build_health_pages(heart, readiness_problem=lambda: ready, liveness_problem=lambda: dead)


def answers(pages: Mapping[str, Render]) -> dict[str, tuple[int, str]]:
    answers = {path: render("") for path, render in pages.items()}
    return {path: (one.status, one.body.decode().strip()) for path, one in answers.items()}


def test_it_is_alive_but_not_started_before_the_first_round_ended() -> None:
    pages = pages_of(Heartbeat(period_s=PERIOD_S, clock=Clock()))
    assert answers(pages) == {
        "/livez": (200, "ok"),
        "/startupz": (503, "the first round has not ended"),
        "/readyz": (503, "the first round has not ended"),
    }


def test_it_is_not_ready_until_the_cluster_is_listed() -> None:
    heart = Heartbeat(period_s=PERIOD_S, clock=Clock())
    heart.beat()
    pages = pages_of(heart, ready="nodes are not listed yet")
    assert answers(pages) == {
        "/livez": (200, "ok"),
        "/startupz": (200, "ok"),
        "/readyz": (503, "nodes are not listed yet"),
    }


def test_it_is_dead_while_no_round_ends_and_alive_when_one_does() -> None:
    clock = Clock()
    heart = Heartbeat(period_s=PERIOD_S, clock=clock)
    heart.beat()
    pages = pages_of(heart)
    clock.now_s += MISSED_ROUNDS * PERIOD_S
    assert answers(pages)["/livez"] == (200, "ok")
    clock.now_s += 1
    assert answers(pages)["/livez"] == (503, "no round ended for 301 s")
    assert answers(pages)["/readyz"] == (200, "ok"), "what is known is still answered"
    heart.beat()
    assert answers(pages)["/livez"] == (200, "ok")


def test_it_allows_at_least_the_minimum_time_for_a_round() -> None:
    clock = Clock()
    heart = Heartbeat(period_s=0.1, clock=clock)
    clock.now_s += MIN_LIMIT_S
    assert heart.liveness_problem() == ""


def test_it_is_dead_when_a_required_thread_has_ended() -> None:
    pages = pages_of(Heartbeat(period_s=PERIOD_S, clock=Clock()), dead="no thread follows nodes")
    assert answers(pages)["/livez"] == (503, "no thread follows nodes")
