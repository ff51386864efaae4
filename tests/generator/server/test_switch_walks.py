"""`toponaut serve --switches` as a process: reports, and a prompt stop."""

from __future__ import annotations

import json
import socket
from pathlib import Path

from generator.cli.exit_codes import ExitCode
from tests.generator.server.programs import SOON_S, started
from tests.generator.switches.snmp_agent import SnmpAgent
from tests.generator.switches.switchboard import mac, switch_rows
from tests.lab.wait import wait_until

COMMUNITY = "cables"


def write_list(root: Path, *ports: int) -> Path:
    secret = root / "community"
    secret.write_text(COMMUNITY)
    secret.chmod(0o600)
    groups = [
        {"addresses": ["127.0.0.1"], "port": port, "communityFile": "community"} for port in ports
    ]
    file = root / "switches.yaml"
    file.write_text(json.dumps({"switches": groups}))
    return file


def test_it_walks_switches_while_it_serves_and_stops_during_a_walk(
    tmp_path: Path,
) -> None:
    report = tmp_path / "store" / "neighborreports" / f"switch-{mac(1).hex()}.yaml"
    with (
        SnmpAgent(switch_rows(1, [(2, "")]), community=COMMUNITY) as agent,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent,
    ):
        silent.bind(("127.0.0.1", 0))
        listed = write_list(tmp_path, agent.port, silent.getsockname()[1])
        (tmp_path / "store").mkdir()
        options = ("--switches", str(listed), "--switch-period", "200ms")
        with started(tmp_path, *options) as generator:
            wait_until(lambda: not report.exists(), deadline_s=SOON_S, what="a report")
            assert generator.stop() == ExitCode.OK
            events = [row["event"] for row in generator.log]
    assert events[-1] == "generator stopped"
    assert json.loads(report.read_text())["spec"]["device"]["name"] == "switch-1"
