"""Outputs of common tools that no parser reads, and the command to run instead.

Each output begins in its own way. A reader that does not know a file looks it up in this table.

Source: the tools' manuals and sources: net-snmp 5.9, lldpd 1.0.18, systemd 257, infiniband-diags,
ibdiagnet 2, iproute2, NetBox, and the command references of the switches' systems.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_HEAD_CHARS: Final = 4096
_HEAD_LINES: Final = 16
_LLDPCLI: Final = "run `lldpcli -f json0 show neighbors details`"
_WALK: Final = (
    "save a walk of the switch (`snmpbulkwalk -v2c -c COMMUNITY -On ADDRESS OID`), or run "
    "`toponaut switches`"
)
_NUMBERS: Final = "walk again with -On (`snmpbulkwalk -v2c -c COMMUNITY -On ADDRESS OID`)"
_SWEEP: Final = "run `ibnetdiscover`"
_HOST: Final = (
    "it shows ports of one host, and no cable; run `ibnetdiscover`, `lldpcli -f json0 show "
    "neighbors details` or the agent there"
)
_NETBOX: Final = (
    "export the cable list as a table with the names of devices and ports (All Data), or save the "
    "answer of its API, /api/dcim/cables/?limit=0"
)
_JSON_WITH: Final = r"\A\s*[\[{{][\s\S]{{0,2000}}?\"{}\"\s*:"


class _ForeignOutput(NamedTuple):
    """One print of a tool."""

    first_lines: str
    """A pattern of its first lines, with ^ and $ at each of them."""
    name: str
    advice: str


_OUTPUTS: Final = (
    _ForeignOutput(r"^\.?[A-Za-z][\w:.-]* = [A-Z][\w -]*:", "a walk with names as OIDs", _NUMBERS),
    _ForeignOutput(r"^(?:lldp|if|sys)\w+\.[\d.]+ = ", "a walk with names as OIDs", _NUMBERS),
    _ForeignOutput(r"^\.1\.[03]\.[\d.]+ (?!= ?)", "snmpwalk's quick print (-Oq)", _NUMBERS),
    _ForeignOutput(
        r"^Timeout: No Response from |^snmp(?:bulk)?walk: ",
        "an error of snmpwalk",
        "check the address, the community and the switch's SNMP view, and walk again",
    ),
    _ForeignOutput(
        r"^\S+ \[(?:WARN|CRIT|INFO)/lldp\w*\]",
        "an error of lldpcli",
        f"check that lldpd runs and that you are root, and {_LLDPCLI}",
    ),
    _ForeignOutput(
        r"^-{20,}\s*\n\s*(?:LLDP|Local chassis|Chassis)\b", "lldpcli's plain text", _LLDPCLI
    ),
    _ForeignOutput(r"\A\s*(?:<\?xml[^>]*>\s*)?<lldp\b", "lldpcli's xml", _LLDPCLI),
    _ForeignOutput(
        r"^local-chassis\.[^\n]*=",
        "lldpcli's keyvalue of `show chassis`",
        "run `lldpcli -f json0 show chassis`",
    ),
    _ForeignOutput(r"^Chassis ID TLV\s*$", "lldptool's text", _LLDPCLI),
    _ForeignOutput(
        r"^LINK\s+(?:SYSTEM-NAME|CHASSIS[ -]ID)\b|\A\s*\{\s*\"Neighbors\"\s*:",
        "networkctl's list of LLDP neighbors",
        f"install lldpd and {_LLDPCLI}",
    ),
    _ForeignOutput(
        r"^IDX\s+LINK\s+TYPE\b|\A\s*\{\s*\"Interfaces\"\s*:", "networkctl's list of links", _HOST
    ),
    _ForeignOutput(
        r"^LocalPort\s+RemoteDevice\s+RemotePortID\b",
        "SONiC's `show lldp table`",
        "run `docker exec lldp lldpcli -f json0 show neighbors details` on the switch",
    ),
    _ForeignOutput(
        r"^(?:LocalPort|Interface)\s.*Remote ?Host\s+Remote ?Port\b",
        "Cumulus Linux' table of LLDP neighbors",
        f"{_LLDPCLI} on the switch",
    ),
    _ForeignOutput(_JSON_WITH.format("lldpNeighbors"), "EOS' JSON of `show lldp neighbors`", _WALK),
    _ForeignOutput(
        r"^Last table change time\s*:|^Port\s+Neighbor Device ID\s",
        "EOS' table of LLDP neighbors",
        _WALK,
    ),
    _ForeignOutput(
        _JSON_WITH.format(r"TABLE_nbor\w*"), "NX-OS' JSON of `show lldp neighbors`", _WALK
    ),
    _ForeignOutput(
        r"^Device[ -]ID\s+Local Int|^Local Intf: |^Chassis id: .*\n(?:Local )?Port id: ",
        "IOS' or NX-OS' list of neighbors",
        _WALK,
    ),
    _ForeignOutput(
        r"^Local Interface\s+Parent Interface\s|<lldp-neighbors-information\b|"
        + _JSON_WITH.format("lldp-neighbors-information"),
        "Junos' list of LLDP neighbors",
        _WALK,
    ),
    _ForeignOutput(
        r"^LLDP neighbor-information of port|^LLDP Neighbor Information\b|^Loc PortID\s+Rem |"
        r"^LLDP Remote Devices Information\b|^Local Int(?:f|erface)\s+(?:Neighbor Dev|Device ID)\b|"
        r"^LOCAL-PORT\s+CHASSIS-ID\b|^System Name\s+Local Interface\s+Chassis ID\b|"
        r"^\S+ has \d+ neighbor",
        "a switch's list of LLDP neighbors",
        _WALK,
    ),
    _ForeignOutput(
        r"^ib(?:warn|panic): \[\d+\]",
        "an error of an InfiniBand tool",
        "run `ibnetdiscover` as root on a node with an active port",
    ),
    _ForeignOutput(
        r"^\w{3} +\d+ \d\d:\d\d:\d\d \d+ \[[0-9A-Fa-f]+\] 0x",
        "opensm's log",
        "use the file opensm-subnet.lst that opensm wrote",
    ),
    _ForeignOutput(r"^[^\n]*\]\s*==\([^\n]*\)==>", "iblinkinfo's output", _SWEEP),
    _ForeignOutput(
        r"^(?:Load(?:ing)? Plugins from:|Running version:|-[IWE]- |Plugin Name\s+Result)",
        "ibdiagnet's log",
        "use the file ibdiagnet2.db_csv, ibdiagnet2.lst or ibdiagnet2.net_dump that it wrote",
    ),
    _ForeignOutput(
        r"^(?:sminfo: sm lid|NodeRecord dump:|# (?:Node|Port|Switch) info:|# Port .*counters:)",
        "the answer to one InfiniBand query",
        _SWEEP,
    ),
    _ForeignOutput(r"^CA '[^'\n]*'\s*$|^Infiniband device '", "ibstat's output", _HOST),
    _ForeignOutput(
        r"^hca_id:\s|^\s*device\s+node GUID\s*$|^\d+ HCAs? found:", "ibv_devinfo's output", _HOST
    ),
    _ForeignOutput(r"^\S+ port \d+ ==> ", "ibdev2netdev's output", _HOST),
    _ForeignOutput(r"^(?:\d+/\d+: )?link \S+/\d+ (?:subnet_prefix|state) ", "rdma's output", _HOST),
    _ForeignOutput(
        r"\A\s*\[\s*\{[^{}]*\"ifindex\"\s*:|^\d+: \S+: <[A-Z0-9_,-]*> mtu \d|"
        r"^\S+\s+(?:UP|DOWN|UNKNOWN)\s+[0-9a-f:]{17,59} <",
        "the output of `ip`",
        _HOST,
    ),
    _ForeignOutput(
        r"^Settings for \S+:\s*$|^\S+: flags=\d+<", "ethtool's or ifconfig's output", _HOST
    ),
    _ForeignOutput(
        r"^(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] [A-Z]", "lspci's output", _HOST
    ),
    _ForeignOutput(r"^\s*GPU0\s+(?:GPU1|NIC0|CPU Affinity)\b", "nvidia-smi's `topo -m`", _HOST),
    _ForeignOutput(r"^\|\s*NVIDIA-SMI \d", "nvidia-smi's table", "run `nvidia-smi -q`"),
    _ForeignOutput(
        r"\A(?!\s*[\[{])[^\n]*\btermination_[ab]_(?:type|id)\b",
        "NetBox's cable export with ids instead of names",
        _NETBOX,
    ),
    _ForeignOutput(
        r"\A(?![^\n]*\bDevice A\b)[^\n]*\bTermination A,[^\n]*\bTermination B\b",
        "NetBox's cable export without the names of devices, which its Current View leaves out",
        _NETBOX,
    ),
    _ForeignOutput(
        r"^NAME\s+STATUS\s+ROLES\s+AGE\s|^Name:\s+\S+\s*\nRoles:|\Anode/\S+\s*$",
        "kubectl's text",
        "run `kubectl get nodes -o json`",
    ),
)
_PATTERNS: Final = tuple(
    (re.compile(output.first_lines, re.MULTILINE), f"{output.name}: {output.advice}")
    for output in _OUTPUTS
)


def explain_output(text: str) -> str:
    """Return which tool printed a text and what to run instead; empty for unknown text."""
    head = "\n".join(text[:_HEAD_CHARS].replace("\r\n", "\n").split("\n")[:_HEAD_LINES])
    return next((said for pattern, said in _PATTERNS if pattern.search(head)), "")
