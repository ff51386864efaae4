"""Bad days of a served store: lost, truncated or renamed data changes no HyperNode by itself.

Files are compared by inode and content, so a file that was rewritten with equal content counts as
written.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.generator.server.days import SMALL, Day, hold


def test_it_deletes_nothing_when_the_reports_of_half_of_the_hosts_vanish(day: Day) -> None:
    before = day.files()
    for host in day.some(16):
        (day.store.reports / f"{host}.yaml").unlink()
    day.tick()
    assert day.files() == before


def test_it_holds_the_loss_of_half_of_the_hosts_and_reports_it(day: Day) -> None:
    plan = hold(day)
    held = day.fabric().status.held
    assert held is not None
    assert (held.hash, held.moved_nodes, held.since) == (plan, 16, "2026-07-01T12:00:00Z")
    assert day.conditions()["ChangeBlocked"] == "TooManyNodes"
    assert day.conditions()["Ready"] == "-ChangeBlocked"


@pytest.mark.parametrize(("num", "is_held"), [(1, False), (3, False), (4, True)])
def test_it_allows_the_loss_of_a_tenth_of_the_nodes_and_no_more(
    day: Day, num: int, *, is_held: bool
) -> None:
    day.lose(day.some(num))
    day.tick()
    assert len(day.placed()) == (32 if is_held else 32 - num)


@pytest.mark.parametrize(("num", "is_held"), [(3, False), (4, True)])
def test_it_follows_new_names_of_a_tenth_of_the_nodes_and_no_more(
    day: Day, num: int, *, is_held: bool
) -> None:
    def rename(text: str) -> str:
        for host in day.some(num):
            text = text.replace(host, f"new-{host}")
        return text

    day.rewrite(rename)
    day.tick()
    assert len([name for name in day.placed() if name.startswith("new-")]) == (
        0 if is_held else num
    )


def test_it_writes_nothing_when_a_switch_is_replaced(day: Day) -> None:
    before = day.files()
    day.rewrite(lambda text: text.replace("02:5c:00:00:00:00", "02:ff:00:00:00:00"))
    day.tick()
    assert day.files() == before
    assert day.conditions()["Ready"] == "HyperNodesWritten"


@pytest.mark.parametrize("keep", [0.2, 0.6])
def test_it_keeps_hypernodes_when_the_inventory_is_truncated(tmp_path: Path, keep: float) -> None:
    day = Day(tmp_path, is_listed=True)
    day.tick()
    before = day.files()
    assert day.nodes is not None
    text = day.nodes.read_text()
    listed = text.splitlines(keepends=True)
    day.nodes.write_text("".join(listed[: int(len(listed) * keep)]))
    day.tick()
    assert day.files() == before
    day.nodes.write_text(text)
    day.tick()
    assert day.files() == before
    assert day.conditions()["ChangeBlocked"] == "-WithinBudget"


def test_it_restores_the_same_hypernodes_when_lost_data_comes_back(day: Day) -> None:
    kept = {file: file.read_bytes() for file in day.store.reports.iterdir()}
    before = day.files()
    hold(day)
    for file, content in kept.items():
        file.write_bytes(content)
    day.tick()
    assert day.files() == before
    assert day.conditions()["ChangeBlocked"] == "-WithinBudget"
    assert day.fabric().status.held is None


def test_it_holds_no_swap_of_two_cables_in_a_small_fabric(tmp_path: Path) -> None:
    day = Day(tmp_path, SMALL)
    day.tick()
    day.lose(day.some(2))
    day.tick()
    assert len(day.placed()) == 6
