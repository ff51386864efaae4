"""Nodes to collect from: settings, sysfs trees in a temporary folder, answers of lldpcli."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.collection import NodeContext
from agent.node.command import Runner
from agent.settings import AgentSettings, NvlinkMode, SweepSettings
from runtime.clock import Clock
from tests.agent.fakes import FakeClock, FakeRunner
from topology.model.facts import DeviceKind

SWEEP = SweepSettings(
    command=("ibnetdiscover",), deadline_s=60, max_output_bytes=1 << 20, subnet=None, interval_s=0
)


def settings_for(root: Path, **changes: Any) -> AgentSettings:  # noqa: ANN401 - any of the settings
    values: dict[str, Any] = {
        "node_name": "node01",
        "hostname": "node01",
        "sysfs_root": root,
        "interfaces": (),
        "lldpcli": "lldpcli",
        "lldpd_socket": None,
        "deadline_s": 5.0,
        "max_output_bytes": 1 << 20,
        "sweep": None,
        "kind": DeviceKind.HOST,
        "frames": None,
        "proc_root": Path("/proc"),
        "ethtool": "ethtool",
        "nvidia_smi": "nvidia-smi",
        "nvlink": NvlinkMode.AUTO,
    }
    return AgentSettings(**(values | changes))


def node_for(
    root: Path,
    runner: Runner | None = None,
    clock: Clock | None = None,
    **changes: Any,  # noqa: ANN401 - any of the settings
) -> NodeContext:
    return NodeContext(settings_for(root, **changes), runner or FakeRunner(), clock or FakeClock())


def plant(root: Path, files: Mapping[str, str]) -> Path:
    """Write files below a root; a text that starts with `->` makes a link to the rest."""
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("->"):
            place.symlink_to(text.removeprefix("->"))
        else:
            place.write_text(text)
    return root


def card(name: str, address: str, mac: str, **files: str) -> dict[str, str]:
    """Return the sysfs files of a physical Ethernet port below a root port of its own bus."""
    device = f"devices/pci0000:00/0000:00:01.0/{address}"
    base = f"{device}/net/{name}"
    known = {
        "type": "1\n",
        "address": f"{mac}\n",
        "carrier": "1\n",
        "operstate": "up\n",
        "speed": "25000\n",
    }
    return {
        f"class/net/{name}": f"->../../{base}",
        f"{base}/device": "->../..",
        f"{device}/vendor": "0x15b3\n",
        **{f"{base}/{path}": text for path, text in (known | files).items() if text},
    }


def virtual(name: str, mac: str) -> dict[str, str]:
    """Return the sysfs files of a veth or the like, which has no device."""
    base = f"devices/virtual/net/{name}"
    return {
        f"class/net/{name}": f"->../../{base}",
        f"{base}/type": "1\n",
        f"{base}/address": f"{mac}\n",
        f"{base}/carrier": "1\n",
        f"{base}/speed": "10000\n",
    }


def heard(*neighbors: tuple[str, str, str]) -> str:
    """Return what `lldpcli -f json0 show neighbors` prints of (port, switch, its port) rows."""
    rows = [
        {
            "name": port,
            "via": "LLDP",
            "chassis": [
                {
                    "id": [{"type": "mac", "value": _mac_of(switch)}],
                    "name": [{"value": switch}],
                }
            ],
            "port": [{"id": [{"type": "ifname", "value": far}], "ttl": [{"value": "120"}]}],
        }
        for port, switch, far in neighbors
    ]
    return json.dumps({"lldp": [{"interface": rows} if rows else {}]})


def chassis(mac: str, name: str = "node01") -> str:
    """Return what `lldpcli -f json0 show chassis` prints."""
    one = {"id": [{"type": "mac", "value": mac}], "name": [{"value": name}]}
    return json.dumps({"local-chassis": [{"chassis": [one]}]})


def _mac_of(switch: str) -> str:
    digits = f"{sum(map(ord, switch)):08x}"
    return "02:aa:" + ":".join(digits[k : k + 2] for k in range(0, 8, 2))
