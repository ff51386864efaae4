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
            "Only one end reports the cable, although the other end reports its Ethernet ports. "
            "The link counts, unless the other end reports another cable at this port, or has no "
            "such port.",
            "Check that both ends send and receive LLDP. Check the transceivers.",
        ),
        FindingKind.SWAPPED_CABLE: KindDescription(
            "error, warning, info",
            "Two cables are in each other's ports, compared with their peers.",
            "Exchange the two plugs that the finding names.",
        ),
        FindingKind.WRONG_RAIL: KindDescription(
            "error, warning, info",
            "A NIC is on the leaf of another rail, or a host has two cables to one leaf.",
            "Exchange or move the plugs that the finding names.",
        ),
        FindingKind.LOST_SWITCH: KindDescription(
            "error",
            "A switch is gone with all of its cables. The finding names the switch if Toponaut saw "
            "it before, else the ports of its neighbors: all of them have no link there, and "
            "[their peers have](findings.md#switches-that-are-gone).",
            "Check the power of the switch and its management port. If it was removed on purpose, "
            "[silence the finding](cabling.md#silence-what-you-know).",
        ),
        FindingKind.MISSING_LINK: KindDescription(
            "error, warning, info",
            "A device has fewer cables than its peers, and a report of either end would show "
            "them. If many peers have as few cables, this is the design, and not a finding.",
            "Check the cable, the transceiver and the port. A `down-port` of the same device "
            "shows which port it is.",
        ),
        FindingKind.SLOW_LINK: KindDescription(
            "error, warning, info",
            "A link runs at a lower rate than most links of its kind. A link with too few peers is "
            "slow at an eighth of the plane's usual rate or less. A lane is lost, or the "
            "transceiver is wrong.",
            "Check the cable, the transceivers and the lanes.",
        ),
        FindingKind.DOWN_PORT: KindDescription(
            "error, warning, info",
            "A port of the plane is down, and most ports of the same name on other hosts are up. "
            "Or the agent reports the port down, but a sweep or the switch still lists its cable."
            " The cable then counts until they no longer list it.",
            "Check the cable, and that neither end is switched off. If the next sweep still lists "
            "the cable, check the agent.",
        ),
        FindingKind.FLAPPING_LINK: KindDescription(
            "error, warning, info",
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
            "No host and no domain belongs to this switch. It is for storage or management, or it"
            " lost its hosts.",
            "Check that this is intended.",
        ),
        FindingKind.DUPLICATE_NAME: KindDescription(
            "warning",
            "Several devices have the same name, and no ID distinguishes them.",
            "Give them different names, or list their IDs in the inventory.",
        ),
        FindingKind.DUPLICATE_ID: KindDescription(
            "error",
            "Two devices have the same GUID or MAC; in a sweep, two cables then lead to one port. "
            "Or the node list gives one ID to several nodes, or contradicts another source. One"
            " finding covers all IDs that two devices share. Its message says which device has "
            "each ID.",
            "Look for cloned firmware, a moved card, or a node that reports false data. Correct "
            "the node list if it is wrong.",
        ),
        FindingKind.UNRESOLVED_HOST: KindDescription(
            "warning",
            "The node of an HCA or NIC is unknown, so this HCA or NIC is not placed. HCAs in a "
            "sweep whose nodes report no HCA are one finding. So are captures without a chassis "
            "that match no other device.",
            "Run the agent on the node, or list the node's GUIDs or MACs.",
        ),
        FindingKind.UNMATCHED_NODES: KindDescription(
            "error, warning, info",
            "Listed nodes have no host in the plane, while hosts have no listed node: the sources "
            "and the list of nodes share no id for them. Such nodes are not placed. The finding "
            "is an error if no node is placed, and info if all nodes with devices such as GPUs "
            "have a host. Also, HyperNodes name nodes that are not listed.",
            "Run the agent on the nodes, or list an id of its host for each node: "
            "[inference.md](inference.md#which-node-a-host-is).",
        ),
        FindingKind.SILENT_NODE: KindDescription(
            "warning",
            "A listed node has sent no report. If it has no link on any port either, the finding "
            "says so.",
            "Check that the agent runs on the node, or that a node without a link is powered.",
        ),
        FindingKind.STALE_REPORT: KindDescription(
            "warning",
            "A report is more than three periods old, or is dated more than three periods in the "
            "future. Or a report or a sweep has no usable time, or a walk of a switch failed. The"
            " facts of the report still count.",
            "Check the agent and its clock, or that the switch answers.",
        ),
        FindingKind.NO_LLDP: KindDescription(
            "warning",
            "An Ethernet port receives no LLDP frames, but its peers do. The card's firmware "
            "consumes the frames, or the switch sends none.",
            "Turn off the firmware's LLDP agent, or turn on LLDP on the switch.",
        ),
        FindingKind.SWEEP_REFUSED: KindDescription(
            "error, warning",
            "Every query of an InfiniBand sweep timed out, as happens if the subnet has an M_Key."
            " The finding is an error if nothing else is known about the subnet.",
            "Read the files of the subnet manager, or give the sweep the key: "
            "[sweeps.md](sweeps.md).",
        ),
        FindingKind.SWEEP_IGNORED: KindDescription(
            "warning, info",
            "A node published a sweep that does not count: the node is not named as a sweeper, "
            "the sweep is dated in the future, or no other node reports a port in this subnet. "
            "The finding names the node. It is info if another node has taken over from this one.",
            "List the node in `spec.sweepers`, or check who uses the token of its agent: "
            "[sweeps.md](sweeps.md#which-sweep-counts).",
        ),
        FindingKind.SWEEP_CONTRADICTED: KindDescription(
            "error",
            "Many hosts contradict the sweep of their subnet. This sweep moves no node.",
            "Check that the sweep reaches the whole subnet, and that the prefix is unique: "
            "[sweeps.md](sweeps.md#which-sweep-counts).",
        ),
        FindingKind.SWEEPS_DISAGREE: KindDescription(
            "warning",
            "The elected node and its spare see different cables, or describe a device "
            "differently. Toponaut holds changes that only one of the two sweeps supports. The "
            "finding names both nodes, and says if one of them no longer sweeps.",
            "Wait for their next sweeps. If the finding stays, run `ibnetdiscover` on both nodes,"
            " and list the nodes that you trust in `spec.sweepers`.",
        ),
        FindingKind.UNUSABLE_REPORT: KindDescription(
            "warning",
            "A report or a sweep of a node cannot be used: it is damaged, incomplete, of an "
            "unknown version, or larger than any real fabric needs. If a host reports [too many "
            "neighbors](sweeps.md#what-a-sweep-may-hold), the rest of its report counts. "
            "Otherwise nothing of the report counts. For a subnet, an older sweep counts instead.",
            "Check the version and the log of the agent on the node. If the agent did not write "
            "it, the node may be compromised.",
        ),
        FindingKind.UNDECIDABLE: KindDescription(
            "error, warning, info",
            "A host or domain has as many cables to one domain as to another, or a domain may be "
            "part of a neighboring one. Toponaut does not guess. A host that the list of nodes "
            "lacks, such as storage on two leaves, needs no place and gives no finding.",
            "Check the cables that the finding names.",
        ),
        FindingKind.NEAR_TIE: KindDescription(
            "warning",
            "The cables decide a domain by a margin of less than 10 %. `toponaut tree -o json` "
            "shows the `margin` of every domain.",
            "Repair the other findings of this domain first.",
        ),
        FindingKind.NOT_A_TREE: KindDescription(
            "warning, info",
            "The wiring is a ring, a torus or a mesh. The tree has only the tiers that are true "
            "for this wiring.",
            "Rely on which nodes share a leaf. Do not rely on the tiers between the leaves and the "
            "top.",
        ),
        FindingKind.ISLAND: KindDescription(
            "warning",
            "A domain has no cable to the largest part of the fabric. No gang is placed across "
            "the two, unless its request allows it.",
            "Check the uplinks of the domain.",
        ),
        FindingKind.TIER_MISMATCH: KindDescription(
            "warning, info",
            "A cable or a domain skips a tier, an NVLink domain is not inside one leaf, or "
            "fewer than 5 % of the nodes report one.",
            "Check that this is intended. If it is not, move the cable. For few hosts in NVLink"
            " domains, check their reports: the tree has no tier for them.",
        ),
        FindingKind.UNUSABLE_FIELD: KindDescription(
            "error, warning",
            "A field in the list of nodes, or a setting of the tree in the Fabric object, cannot "
            "be used. A setting that was never valid stops every plan; the finding is then an "
            "error. In the list of nodes, Toponaut ignores the field and keeps the node. To be "
            "safe, it treats a node with a wrong taint or `schedulable` as unschedulable, and a "
            "wrong free quantity as used. If an entry names no node, the finding is an error, and"
            " Toponaut takes no node out of its HyperNode until you correct the entry.",
            "Correct the entry that the finding quotes.",
        ),
        FindingKind.CUT_INPUT: KindDescription(
            "error",
            "The end of a sweep, capture, walk or list of nodes is missing. A YAML list counts as"
            " cut if its last line has no line break or no value. Toponaut plans nothing from "
            "such input and compares no cables, because what is absent may exist.",
            "Give the whole file: repeat the sweep or the capture.",
        ),
        FindingKind.OUTPUT_REFUSED: KindDescription(
            "warning",
            "An object of an output, or a label of a node, is not written: another writer owns "
            "it, the API server refuses it, or the output cannot be rendered. Or somebody deleted"
            " a HyperNode of Toponaut, and a finalizer keeps it. Everything else is written. "
            "Toponaut lists at most 20 findings of each output.",
            "Remove the other writer of the object or key, or change `spec.outputs`.",
        ),
        FindingKind.PLANE_UNKNOWN: KindDescription(
            "error, warning",
            "No cable of the network is known, so no node is placed and nothing is written. Slower "
            "ports that have a cable do not take its place. The finding is a warning if it is "
            "about some of the nodes or one InfiniBand subnet.",
            "Get what the finding says is missing: a sweep, LLDP, or cables. If jobs use other "
            "ports, pass the rules that the finding shows: [planes.md](planes.md).",
        ),
        FindingKind.PLANE_DOUBTFUL: KindDescription(
            "warning, info",
            "Two groups of ports may be the compute network, and the choice is close. The finding "
            "is info if the chosen ports are nearer to the GPUs, or if they are InfiniBand with a "
            "known cable and the others are Ethernet.",
            "Pass the rules that the finding shows for the right ports, which settles the choice: "
            "[planes.md](planes.md).",
        ),
        FindingKind.RANK_ORDER: KindDescription(
            "info",
            "The ring over the ranks of a gang leaves a domain more often than necessary. Only "
            "`toponaut serve` reports it: on its page, in its log and in the metrics, about gangs "
            "that run for ten minutes. The evidence is the nodes in a better order.",
            "Give the launcher the order that `toponaut ranks` prints: [ranks.md](ranks.md).",
        ),
        FindingKind.DOMAIN_TOO_LARGE: KindDescription(
            "error",
            "A domain has more members than a HyperNode can list: an API server stores at most "
            "1.5 MiB. Until this is corrected, Toponaut plans nothing.",
            "Check the cables of the domain, and which plane they are in.",
        ),
        FindingKind.GUESSED_KIND: KindDescription(
            "info",
            "There is no list of nodes, so Toponaut guessed which devices are switches from the "
            "devices that are connected to them.",
            "List the nodes (`--nodes`).",
        ),
    }
)
"""The description of each kind, in the order of docs/findings.md."""
