"""Links that only one end reports although the other end could report them too."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from topology.model.fabric import Fabric, Link, columns_of
from topology.model.facts import Finding, FindingKind, Medium, Severity
from topology.model.lazy_rows import rows_at


def find_one_sided_links(fabric: Fabric) -> Iterator[Finding]:
    """Yield a finding per link that one end reports, and the other could report but does not."""
    link_indices = np.flatnonzero(columns_of(fabric).links.is_one_sided)
    for link in rows_at(fabric.links, link_indices.tolist()):
        yield _duplicate_finding(fabric, link) or _one_sided_finding(fabric, link)


def _duplicate_finding(fabric: Fabric, link: Link) -> Finding | None:
    """Return the finding of two devices with one GUID; None if that is not what a link shows.

    A sweep has one cable for each port of a GUID. If two ports hear one port, two devices have its
    GUID: a sweep has no old entries, as LLDP has.
    """
    if not link.is_disputed or fabric.ports[link.a].medium is not Medium.INFINIBAND:
        return None
    links = columns_of(fabric).links
    for shared, other in ((link.a, link.b), (link.b, link.a)):
        cables = np.flatnonzero(((links.a == shared) | (links.b == shared)) & ~links.is_disputed)
        for row in rows_at(fabric.links, cables.tolist()):
            far = fabric.port_name(row.b if row.a == shared else row.a)
            own, near = fabric.port_name(shared), fabric.port_name(other)
            return Finding(
                kind=FindingKind.DUPLICATE_ID,
                device=own.device,
                port=own.port,
                severity=Severity.ERROR,
                message=(
                    f"Two cables lead to {own.device} port {own.port}: from {far.device} port "
                    f"{far.port} and from {near.device} port {near.port}. So two devices have one "
                    "GUID, and only one of them is placed. Look for a cloned firmware image, and "
                    "give one of them another GUID."
                ),
                ports=(own, far, near),
            )
    return None


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
                "What the other end reports contradicts it, so this link is left out. The finding "
                "disappears when the entry times out."
                if link.is_disputed
                else "Check the transceivers, and that both ends send and receive."
            )
        ),
        ports=ends,
    )
