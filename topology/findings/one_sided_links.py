"""Links that only one end reports although the other end could report them too."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from topology.model.fabric import Fabric, Link, columns_of
from topology.model.facts import Finding, FindingKind, Severity
from topology.model.lazy_rows import rows_at


def find_one_sided_links(fabric: Fabric) -> Iterator[Finding]:
    """Yield a finding per link that one end reports, and the other could report but does not."""
    link_indices = np.flatnonzero(columns_of(fabric).links.is_one_sided)
    for link in rows_at(fabric.links, link_indices.tolist()):
        yield _one_sided_finding(fabric, link)


def _one_sided_finding(fabric: Fabric, link: Link) -> Finding:
    ends = (fabric.port_name(link.a), fabric.port_name(link.b))
    return Finding(
        kind=FindingKind.ONE_SIDED_LINK,
        device=ends[0].device,
        port=ends[0].port,
        severity=Severity.WARNING,
        message=(
            f"Only one end reports the link between {fabric.show_link(link)}. "
            + (
                "The other end reports another cable there, so this link is left out. The finding "
                "disappears when the old entry times out."
                if link.is_disputed
                else "Check the transceivers, and that both ends send and receive."
            )
        ),
        ports=ends,
    )
