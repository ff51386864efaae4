"""`toponaut serve` in the lab: what it has written so far, and what it has said."""

import json
import sys
from collections.abc import Callable, Collection
from pathlib import Path

from generator.outputs.hypernode.forest import build_hypernode_tree
from generator.store.object_folders import read_hypernodes
from tests.lab.wait import wait_until
from topology.model.tree import host_partitions
from topology.synthetic import Wiring, build_undamaged, derive_truth

DEADLINE_S = 60
Partitions = list[frozenset[frozenset[str]]]
Said = tuple[str, str]
"""Kind and device of a finding."""


def serve_command(store: Path, *more: str) -> tuple[str, ...]:
    """Return the command that serves a store, with a round every two seconds."""
    store.mkdir(exist_ok=True)
    options = ("--period", "2s", "--listen", "127.0.0.1:0", "--insecure-loopback")
    program = (sys.executable, "-m", "generator", "serve", "--store", str(store))
    return (*program, *options, "--log-format", "json", *more)


class Generator:
    """A running generator, seen from outside: by its HyperNodes and its log."""

    def __init__(
        self, store: Path, log: Path, wiring: Wiring, *, ignored: Collection[str] = ()
    ) -> None:
        """Look at one that was started with `serve_command`.

        Args:
            store: its folder.
            log: where it logs to.
            wiring: the true cables.
            ignored: kinds of findings that do not count here.
        """
        self._ignored = frozenset(ignored)
        self.reports = store / "neighborreports"
        self._hypernodes = store / "hypernodes"
        self._log = log
        self._truth = host_partitions(derive_truth(build_undamaged(wiring)))

    def events(self) -> list[dict[str, object]]:
        """Return what it logged so far."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        return [json.loads(line) for line in lines if line.startswith("{")]

    def findings(self) -> set[Said]:
        """Return what it says is wrong now."""
        found: set[tuple[str, str, str]] = set()
        for row in self.events():
            key = (str(row.get("kind")), str(row.get("device")), str(row.get("port")))
            if row["event"] == "finding appeared":
                found.add(key)
            elif row["event"] == "finding gone":
                found.discard(key)
        return {(kind, device) for kind, device, _ in found if kind not in self._ignored}

    def partitions(self) -> Partitions:
        """Return the hosts of each domain, tier by tier, as the HyperNodes have them now."""
        if not self._hypernodes.exists():
            return []
        found = read_hypernodes(self._hypernodes).values
        return host_partitions(build_hypernode_tree(found).tree)

    def files(self) -> dict[str, tuple[int, bytes]]:
        """Return inode and content of each HyperNode: one that was rewritten has a new inode."""
        return {file.name: (file.stat().st_ino, file.read_bytes()) for file in self._list()}

    def settle(self, *, but_for: Collection[str] = ()) -> None:
        """Wait until the HyperNodes are what was cabled and nothing is said to be wrong.

        Args:
            but_for: hosts that nothing places now.
        """
        gone = frozenset(but_for)
        wanted = [frozenset(hosts - gone for hosts in tier) for tier in self._truth]

        def wrong() -> object:
            is_true = self.partitions() == wanted
            return None if is_true and (gone or not self.findings()) else self._state()

        wait_until(wrong, deadline_s=DEADLINE_S, what="HyperNodes as cabled")

    def await_findings(self, is_wanted: Callable[[set[Said]], bool], *, what: str) -> None:
        """Wait until the findings are exactly the expected ones."""

        def wrong() -> object:
            return None if is_wanted(self.findings()) else self._state()

        wait_until(wrong, deadline_s=DEADLINE_S, what=what)

    def _list(self) -> list[Path]:
        return sorted(self._hypernodes.glob("*.yaml"))

    def _state(self) -> object:
        complaints = [row for row in self.events() if row["level"] == "error"]
        return sorted(self.findings()), self.partitions(), complaints[-3:]
