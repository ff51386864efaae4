"""The command-line options of a synthetic fabric and its faults, to repeat a run."""

from __future__ import annotations

from typing import Final

from topology.synthetic import FabricKind, FaultSpec, SyntheticSpec


def render_fabric_options(spec: SyntheticSpec) -> list[str]:
    """Return the command-line options of a fabric."""
    words = ["--kind", spec.kind.value, "--hosts", str(spec.num_hosts)]
    if spec.kind in {FabricKind.RAIL, FabricKind.DUAL_PLANE}:
        words += ["--rails", str(spec.rails)]
    words += ["--radix", str(spec.radix)]
    given = {
        "--tiers": spec.tiers,
        "--uplinks": spec.uplinks,
        "--storage-leaves": spec.storage_leaves,
        "--islands": spec.islands,
        "--peer-links": spec.peer_links,
        "--nvlink-domain": spec.nvlink_hosts,
    }
    words += [word for flag, num in given.items() if num for word in (flag, str(num))]
    return [*words, "--medium", spec.medium.value, "--names", spec.names.value]


def render_fault_options(faults: FaultSpec) -> list[str]:
    """Return the command-line options of faults; empty without faults."""
    given = {
        "--lose-links": _render_percent(faults.lose_links),
        "--swap": str(faults.num_swaps) if faults.num_swaps else _render_percent(faults.swap),
        "--silent": _render_percent(faults.silent),
        "--lose-switch": str(faults.lose_switches),
        "--lose-rank": str(faults.lose_rank or 0),
        "--lose-host": str(faults.lose_hosts),
    }
    words = [word for pair in given.items() if pair[1] not in {"0", "0%"} for word in pair]
    words += [word for name in faults.lost for word in ("--lose", name)]
    return [*words, "--shuffle-hosts"] if faults.shuffle else words


_PERCENT_DIGITS: Final = 9


def _render_percent(share: float) -> str:
    return f"{100 * share:.{_PERCENT_DIGITS}f}".rstrip("0").rstrip(".") + "%"
