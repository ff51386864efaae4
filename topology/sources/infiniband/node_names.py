"""Host, HCA and switch names in InfiniBand node descriptions.

A description is free text of at most 64 bytes, and its owner may set it to anything. It is a
display name only; the GUID identifies a device.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from topology.model.ids import DEFAULT_HOST_NAMES

# The text of the firmware before a name is set, seen on ConnectX, Infiniscale, Quantum and
# Voltaire devices. It names the model, never the device.
_FACTORY: Final = re.compile(
    r".*\bMellanox Technologies(?: Aggregation Node)?"
    r"|MT\d{4,6}\s+(?:ConnectX|Connect-IB|BlueField|Infini|Quantum|Switch)\S*"
    r"|\S+ Voltaire"
    r"|Voltaire \S+ - \d+ \w+ ports switch"
)
AGGREGATION_DEVID: Final = 0xCF09
AGGREGATION_TEXT: Final = "Mellanox Technologies Aggregation Node"
_NODE_ID: Final = re.compile(r"(?:[SHR]-|0x)?[0-9a-fA-F]{16}")
# RDMA device names: the kernel's (mlx5_0, qib0), udev's by PCI path or slot (ibp11s0f0, ibs1),
# and HCA-n of the old OpenIB scripts.
_LABEL: Final = re.compile(
    r"HCA-\d+|mlx\d+_\w+|(?:hfi1|erdma|hns|mana)_\d+|(?:mthca|qib|ipath|irdma|bnxt_re|qedr|ib)\d+"
    r"|(?:ib|roce|rdma|opa|iw)(?:P\d+)?(?:p\d+s\d+|[so]\d+)(?:[fdn]\w+)?"
)
# A description that is only this has no host name: the kernel's default without a host name.
_BARE_LABEL: Final = re.compile(r"HCA-\d+|mlx\d+_\d+")
_PORT_WORD: Final = re.compile(r"port\d+")
_CHASSIS_PREFIX: Final = "MF0;"


def host_name(description: str) -> tuple[str, str]:
    """Return (host, HCA label) of a CA's description; either is empty if it is not in the text.

    `n1 mlx5_0`, `n1 HCA-1 `, `n1:mlx5_0`, `n1 ibp64s0 port1` and `HCA-1 n1` name n1. `localhost
    HCA-1` has a label and no host; factory texts have neither. The host is the text before the last
    word; the label is the last word, if it looks like an RDMA device. A list of nodes knows better
    which word is the host: see `identity.node_names`. A module of a gateway, such as
    `MF0;NAME:MODEL/GW1`, is `NAME/GW1`.
    """
    text = description.strip()
    if _FACTORY.fullmatch(text):
        return "", ""
    if text.startswith(_CHASSIS_PREFIX):
        return switch_name(text), ""
    host, label = _split_host(text)
    is_default = host.lower() in DEFAULT_HOST_NAMES or _FACTORY.fullmatch(host)
    if is_default or _NODE_ID.fullmatch(host):
        host = ""
    return host, label if _LABEL.fullmatch(label) else ""


def host_names(descriptions: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield (host, HCA label) of each description, with a cache: sweeps repeat hosts and labels.

    If the last word looks like an RDMA device, no other rule applies, because no factory text ends
    that way. Then the text before that word alone decides the host.
    """
    hosts: dict[str, str] = {}
    labels: dict[str, bool] = {}
    for text in descriptions:
        head, _, label = text.rpartition(" ")
        is_label = labels.get(label)
        if is_label is None:
            is_label = labels[label] = _LABEL.fullmatch(label) is not None
        host = hosts.get(head) if is_label else None
        if host is None:
            host, label = host_name(text)
            if is_label and head.strip():
                hosts[head] = host
        yield host, label


def _split_host(text: str) -> tuple[str, str]:
    host, label = _last_word(text)
    if host and _PORT_WORD.fullmatch(label):
        before, device = _last_word(host)
        if before and _LABEL.fullmatch(device):
            return before, device
    if host:
        first, *rest = text.split(maxsplit=1)
        is_label_first = _LABEL.fullmatch(first) and not _LABEL.fullmatch(label)
        return (rest[0], first) if is_label_first else (host, label)
    head, _, tail = text.rpartition(":")
    if head and _LABEL.fullmatch(tail):
        return head, tail
    return ("", text) if _BARE_LABEL.fullmatch(text) else (text, "")


def _last_word(text: str) -> tuple[str, str]:
    words = text.rsplit(None, 1)
    return (words[0], words[1]) if len(words) > 1 else ("", text)


def switch_name(description: str) -> str:
    """Return the name in the description of a switch or router; empty if it has none.

    `MF0;NAME:MODEL/U1` is NAME. Further ASICs and the modules of a director keep their place in
    the name: `NAME/U2`, `NAME/L01`, `NAME/U2/RT`.
    """
    text = description.strip()
    if _FACTORY.fullmatch(text) or _NODE_ID.fullmatch(text):
        return ""
    if not text.startswith(_CHASSIS_PREFIX):
        return text
    text = text.removeprefix(_CHASSIS_PREFIX)
    name, colon, model = text.rpartition(":")
    if not colon:
        return text.strip()
    place = model.partition("/")[2]
    place = "" if place == "U1" else place.removesuffix("/U1")
    return f"{name}/{place}".strip() if place else name.strip()


def describe_switch(name: str) -> str:
    """Return a description for which `switch_name` returns this name."""
    return name if switch_name(name) == name else f"{_CHASSIS_PREFIX}{name}:SW/U1"


def describe_host(name: str, label: str) -> str:
    """Return a description for which `host_name` returns this name and label."""
    if not name:
        return f"localhost {label}" if label else ""
    if label:
        texts = (f"{name} {label}", f"{label} {name}", name)
    else:
        texts = (name, f"{name} x", f"{_CHASSIS_PREFIX}{name}:SW/U1")
    return next((text for text in texts if host_name(text) == (name, label)), name)
