"""The meaning of each kind of finding, and the advice: for `toponaut explain` and the docs.

The texts are Markdown; a test keeps the table of docs/findings.md equal to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from topology.model.facts import FindingKind


class KindDescription(NamedTuple):
    """One kind of finding."""

    severities: str
    """The possible severities, most severe first, separated by commas."""
    meaning: str
    advice: str


KIND_DESCRIPTIONS: Final[Mapping[FindingKind, KindDescription]] = MappingProxyType(
    {
        FindingKind.ONE_SIDED_LINK: KindDescription(
            "warning",
            "One end reports the cable. The other end could report it, because it lists Ethernet "
            "ports, and does not. The link counts unless the silent end reports another cable.",
            "Check that both ends send and receive. Check the transceivers.",
        ),
        FindingKind.SWAPPED_CABLE: KindDescription(
            "warning",
            "Two cables are in each other's ports, compared with their peers.",
            "Exchange the two plugs that the finding names.",
        ),
        FindingKind.WRONG_RAIL: KindDescription(
            "warning",
            "A NIC is on the leaf of another rail, or a host has two cables to one leaf.",
            "Exchange or move the plugs that the finding names.",
        ),
        FindingKind.MISSING_LINK: KindDescription(
            "warning",
            "A device has fewer cables than its peers, and it or the other end would report them. "
            "Where many peers have as few, this is the design.",
            "Check the cable, the transceiver and the port. A `down-port` next to it shows which "
            "port.",
        ),
        FindingKind.SLOW_LINK: KindDescription(
            "warning",
            "A link runs at a lower rate than most links of its kind. A link with too few peers is "
            "slow at an eighth of the plane's usual rate or less. A lane is lost, or the "
            "transceiver is wrong.",
            "Check the cable, the transceivers and the lanes.",
        ),
        FindingKind.DOWN_PORT: KindDescription(
            "warning",
            "A port of the plane is down, and most ports of the same name on other hosts are up. "
            "Or its agent reports it down, and a sweep or its switch still lists its cable; the "
            "cable counts until they no longer do.",
            "Check the cable, and that neither end is switched off. If the next sweep still lists "
            "the cable, check the agent.",
        ),
        FindingKind.FLAPPING_LINK: KindDescription(
            "warning",
            "A port lost its link three times or more within an hour, by the kernel's counters.",
            "Reseat or replace the cable and the transceivers.",
        ),
        FindingKind.HOST_ON_SPINE: KindDescription(
            "warning",
            "A host is cabled to a switch that serves leaves. This cable does not place the host "
            "in any domain.",
            "If jobs run on the host, move the cable to a leaf.",
        ),
        FindingKind.AUX_SWITCH: KindDescription(
            "info",
            "No host or domain belongs to this switch: it is for storage or management, or it lost "
            "its hosts.",
            "Check that this is intended.",
        ),
        FindingKind.DUPLICATE_NAME: KindDescription(
            "warning",
            "Several devices have the same name, and no ID distinguishes them.",
            "Give them different names, or list their IDs in the inventory.",
        ),
        FindingKind.DUPLICATE_ID: KindDescription(
            "error",
            "Two devices claim one GUID or MAC, or the node list gives one ID to several nodes or "
            "contradicts the reports, a sweep, a capture or a walk. One finding covers all IDs of "
            "two devices. The message says which device each ID counts for.",
            "Look for cloned firmware, a moved card, or a node that reports false data. Correct "
            "the node list if it is wrong.",
        ),
        FindingKind.UNRESOLVED_HOST: KindDescription(
            "warning",
            "The node of an HCA or NIC is unknown, so the HCA or NIC is not placed. HCAs that a "
            "sweep describes as those of nodes whose reports list no HCA are one finding, and so "
            "are captures without a chassis that match no device of another source.",
            "Run the agent on the node, or list the node's GUIDs or MACs.",
        ),
        FindingKind.SILENT_NODE: KindDescription(
            "warning",
            "A listed node has sent no report.",
            "Check that the agent runs on the node.",
        ),
        FindingKind.STALE_REPORT: KindDescription(
            "warning",
            "A report is more than three periods old, dated more than three periods in the future, "
            "or it or a sweep has no usable time (no date, no zone, a year before 2000), or a walk "
            "of a switch failed. The facts of the report still count.",
            "Check the agent and its clock, or that the switch answers.",
        ),
        FindingKind.NO_LLDP: KindDescription(
            "warning",
            "An Ethernet port receives no LLDP frame, and its peers do. The card's firmware "
            "consumes the frames, or the switch sends none.",
            "Turn off the firmware's LLDP agent, or turn on LLDP on the switch.",
        ),
        FindingKind.SWEEP_REFUSED: KindDescription(
            "error, warning",
            "Every query of an InfiniBand sweep timed out, which is what an M_Key causes. The "
            "finding is an error if nothing is known about the subnet.",
            "Read the files of the subnet manager, or give the sweep the key: "
            "[sweeps.md](sweeps.md).",
        ),
        FindingKind.SWEEP_IGNORED: KindDescription(
            "warning, info",
            "A node published a sweep but is not named as a sweeper, its sweep is dated in the "
            "future, or it is the only node that reports a port in a subnet. The finding names the "
            "node. Nothing else depends on that sweep. It is info if the node swept before and "
            "another one took over.",
            "List the node in `spec.sweepers`, or check who uses the token of its agent: "
            "[sweeps.md](sweeps.md#which-sweep-counts).",
        ),
        FindingKind.SWEEP_CONTRADICTED: KindDescription(
            "error",
            "Many hosts contradict the sweep of their subnet. It moves no node.",
            "Check that the sweep reaches the whole subnet, and that the prefix is unique: "
            "[sweeps.md](sweeps.md#which-sweep-counts).",
        ),
        FindingKind.SWEEPS_DISAGREE: KindDescription(
            "warning",
            "The elected node and its spare see different cables, or describe devices otherwise. "
            "Nothing is moved that follows from only one of them. The finding names both nodes, "
            "and says if one of them does not sweep any longer.",
            "Wait for their next sweeps. If it stays, run `ibnetdiscover` on both, and list the "
            "nodes that you trust in `spec.sweepers`.",
        ),
        FindingKind.UNUSABLE_REPORT: KindDescription(
            "warning",
            "A report or a sweep of a node cannot be used: it is damaged, incomplete, of an "
            "unknown version, or larger than that of any fabric. Of a host's report with [more "
            "neighbors than a host has](sweeps.md#what-a-sweep-may-hold), the rest counts; of "
            "anything else nothing counts, and an older sweep of the subnet counts instead.",
            "Check the version and the log of the agent on the node. If the agent did not write "
            "it, the node may be compromised.",
        ),
        FindingKind.UNDECIDABLE: KindDescription(
            "error, warning, info",
            "A host or domain has as many cables to one domain as to another, or a domain may be "
            "part of its neighbor. Toponaut does not guess.",
            "Check the cables that the finding names.",
        ),
        FindingKind.NEAR_TIE: KindDescription(
            "warning",
            "A domain was decided by a margin below 10 %. `toponaut tree -o json` shows the "
            "`margin` of every domain.",
            "Repair the other findings there.",
        ),
        FindingKind.NOT_A_TREE: KindDescription(
            "warning, info",
            "The wiring is a ring, a torus or a mesh. The tree is the deepest that is true for "
            "this wiring.",
            "Rely on which nodes share a leaf. Do not rely on the tiers between the leaves and the "
            "top.",
        ),
        FindingKind.ISLAND: KindDescription(
            "warning",
            "A domain has no cable to the largest one. No gang is placed across the two.",
            "Check the up-links of the domain.",
        ),
        FindingKind.TIER_MISMATCH: KindDescription(
            "warning, info",
            "A cable or a domain skips a tier, or an NVLink domain does not nest in the leaves.",
            "Check that this is intended. If it is not, move the cable.",
        ),
        FindingKind.UNUSABLE_FIELD: KindDescription(
            "error, warning",
            "An entry in the list of nodes, or a setting of the tree in the Fabric object, has a "
            "field that cannot be used. A setting without a last good value stops every plan "
            "(error). In the list of nodes, the field is left out and the node stays listed; the "
            "finding names file and row, and beyond 1000 nodes their number. What cannot be read "
            "counts against new pods: a wrong taint or `schedulable` makes the node unschedulable, "
            "a wrong free quantity, or one above the capacity, counts as used. The finding is an "
            "error if an entry names no node at all: until it is corrected, nothing is planned "
            "that could take a node out of its HyperNode.",
            "Correct the entry that the finding quotes.",
        ),
        FindingKind.CUT_INPUT: KindDescription(
            "error",
            "The end of a sweep, capture, walk or list of nodes is missing. A list in YAML may be "
            "cut if its last line has no line break or no value. Nothing is planned from it, and "
            "findings that compare cables are withheld, because what is absent may exist.",
            "Give the whole file: repeat the sweep or the capture.",
        ),
        FindingKind.OUTPUT_REFUSED: KindDescription(
            "warning",
            "An object of an output, or a label of a node, is not written: another writer owns it, "
            "or the API server refuses it, or the output cannot be rendered. Or a HyperNode of "
            "Toponaut was deleted, and a finalizer keeps it. Everything else is "
            "written. At most 20 of each output are listed.",
            "Remove the other writer of the object or key, or change `spec.outputs`.",
        ),
        FindingKind.DOMAIN_TOO_LARGE: KindDescription(
            "error",
            "A domain has so many members that no API server can store its HyperNode, which lists "
            "each (1.5 MiB). Nothing is planned meanwhile.",
            "Check the cables of the domain, and which plane they are in.",
        ),
        FindingKind.GUESSED_KIND: KindDescription(
            "info",
            "Without a list of nodes, Toponaut guessed which devices are switches from the devices "
            "that see them.",
            "List the nodes (`--nodes`).",
        ),
    }
)
"""In the order of docs/findings.md."""
