"""The members of the closed sets in reports, by the texts that stand for them. Pure."""

from __future__ import annotations

from typing import Final

from topology.model.facts import (
    Capability,
    DeviceKind,
    GpuDistance,
    Medium,
    PortState,
    Source,
)
from topology.model.ids import IdKind

ID_KINDS: Final = {str(kind): kind for kind in IdKind}
DEVICE_KINDS: Final = {str(kind): kind for kind in DeviceKind}
CAPABILITIES: Final = {str(capability): capability for capability in Capability}
MEDIA: Final = {str(medium): medium for medium in Medium}
STATES: Final = {str(state): state for state in PortState}
SOURCES: Final = {str(source): source for source in Source}
DISTANCES: Final[dict[str | None, GpuDistance | None]] = {
    None: None,
    **{str(distance): distance for distance in GpuDistance},
}
"""No distance is known as None."""
