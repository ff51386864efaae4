"""The law of silent sweepers: one liar moves no node, however the other sweepers fall silent.

Three nodes of a cluster can sweep. In any order, honest nodes sweep, fall silent, come back and
withdraw sweeps that nobody needs, the liar sweeps the truth or a lie, and the generator restarts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.generator.ingest.swept_fabrics import HOSTS, exchange, without
from tests.generator.server.sweep_rounds import ABLE_NODES, FORGED, Sweeps

LIES = [
    FORGED,
    exchange(HOSTS[5], HOSTS[15], FORGED),
    without(lambda device: device.name == HOSTS[7]),
    without(lambda device: device.name in HOSTS[4:12]),
]
"""Two false ones, one that lacks a host, and one that lacks half of the hosts."""
CHANGED = exchange(HOSTS[2], HOSTS[11])
steps = st.lists(
    st.tuples(
        st.sampled_from(["lie", "truth", "sweep", "silence", "return", "restart"]),
        st.integers(0, 3),
    ),
    max_size=10,
)


class Sequence:
    """What happens to the sweepers of a cluster, one step after the other."""

    def __init__(self, root: Path, liar: str) -> None:
        self.sweeps, self.liar = Sweeps(root), liar
        self.silent: set[str] = set()

    def take(self, step: str, at: int) -> None:
        """Take a step; agents sweep only while the Fabric object names them."""
        honest = [node for node in ABLE_NODES if node != self.liar]
        node = honest[at % len(honest)]
        sweeping: dict[str, Callable[[], None]] = {
            "lie": lambda: self.sweeps.sweep(self.liar, LIES[at]),
            "truth": lambda: self.sweeps.sweep(self.liar),
            "sweep": lambda: self.sweep(node),
            "silence": lambda: self.silence(node),
            "return": lambda: self.come_back(node),
            "restart": self.sweeps.restart,
        }
        sweeping[step]()
        self.sweeps.tick(2)
        self.withdraw()
        self.sweeps.tick()

    def sweep(self, node: str) -> None:
        if node in self.sweeps.roles and node not in self.silent:
            self.sweeps.sweep(node)

    def silence(self, node: str) -> None:
        self.silent.add(node)
        self.sweeps.silence(node)

    def come_back(self, node: str) -> None:
        self.silent.discard(node)
        self.sweeps.come_back(node)

    def withdraw(self) -> None:
        """Let agents withdraw their sweeps as soon as the Fabric object allows it."""
        status = self.sweeps.status
        kept = {row["node"] for key in ("sweepers", "sweeps", "witnesses") for row in status[key]}
        for node in ABLE_NODES:
            if node not in kept and node not in self.silent:
                self.sweeps.withdraw(node)


@pytest.mark.timeout(400)
@given(st.sampled_from(ABLE_NODES), steps)
@settings(max_examples=examples(120), deadline=None)
def test_one_liar_moves_no_node_whoever_falls_silent(
    liar: str, taken: list[tuple[str, int]]
) -> None:
    with TemporaryDirectory() as root:
        sequence = Sequence(Path(root), liar)
        before = sequence.sweeps.settle()
        for step, at in taken:
            sequence.take(step, at)
            assert sequence.sweeps.files() == before, (step, at)


@pytest.mark.timeout(400)
@given(st.lists(st.tuples(st.sampled_from(["silence", "return"]), st.integers(0, 2)), max_size=6))
@settings(max_examples=examples(40), deadline=None)
def test_a_real_change_is_written_once_two_sweepers_saw_it(taken: list[tuple[str, int]]) -> None:
    with TemporaryDirectory() as root:
        sweeps = Sweeps(Path(root))
        before = sweeps.settle()
        silent: set[str] = set()
        for step, at in taken:
            node = ABLE_NODES[at]
            if step == "return":
                silent.discard(node)
                sweeps.come_back(node)
            elif len(silent | {node}) <= 1:
                silent.add(node)
                sweeps.silence(node)
            sweeps.tick()
            for swept in set(sweeps.roles) - silent:
                sweeps.sweep(swept)
            sweeps.tick()
        for node in sorted(set(sweeps.roles) - silent):
            sweeps.sweep(node, CHANGED)
            sweeps.tick(2)
        assert sweeps.blocked == ""
        assert sweeps.files() != before
        changed = {name: text for name, text in sweeps.files().items() if before.get(name) != text}
        assert len(changed) == 2, "the two leaves whose nodes changed places"
