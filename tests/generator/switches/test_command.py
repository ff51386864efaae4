"""`toponaut switches` against agents on loopback: reports, folders, exit codes and secrets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from generator.cli.exit_codes import ExitCode
from generator.store.object_folders import read_reports
from tests.generator.scenes import Ran, run
from tests.generator.switches.snmp_agent import Manner, SnmpAgent
from tests.generator.switches.switchboard import mac, switch_rows

COMMUNITY = "cables-of-2026"


@pytest.fixture
def agent() -> Iterator[SnmpAgent]:
    with SnmpAgent(switch_rows(1, [(2, "10.0.0.2"), (3, "")]), community=COMMUNITY) as running:
        yield running


def write_config(folder: Path, *ports: int, community: str = COMMUNITY) -> Path:
    secret = folder / "community"
    secret.write_text(community + "\n")
    secret.chmod(0o600)
    groups = [
        {"addresses": ["127.0.0.1"], "port": port, "communityFile": "community"} for port in ports
    ]
    config = folder / "switches.yaml"
    config.write_text(json.dumps({"switches": groups}))
    return config


def walk(config: Path, *options: object) -> Ran:
    return run("switches", "--config", config, *options)


def neighbors(item: dict[str, Any]) -> list[str]:
    return [heard["name"] for port in item["spec"]["ports"] for heard in port["neighbors"]]


def test_it_prints_reports_that_the_other_commands_read(agent: SnmpAgent, tmp_path: Path) -> None:
    ran = walk(write_config(tmp_path, agent.port), "-o", "json")
    assert (ran.code, ran.err) == (ExitCode.OK, "")
    (item,) = ran.document["items"]
    assert item["metadata"]["name"] == f"switch-{mac(1).hex()}"
    assert neighbors(item) == ["switch-2", "switch-3"]
    reports = tmp_path / "reports"
    reports.mkdir()
    (reports / "all.json").write_text(ran.out)
    read = read_reports(reports)
    assert not read.all_problems
    assert [report.name for report in read.values] == [item["metadata"]["name"]]


def test_it_writes_a_report_per_switch(agent: SnmpAgent, tmp_path: Path) -> None:
    out = tmp_path / "new" / "reports"
    ran = walk(write_config(tmp_path, agent.port), "--out", out)
    assert ran.code == ExitCode.OK
    lines = [line.split() for line in ran.out.splitlines()]
    assert lines[0] == ["ADDRESS", "OUTCOME", "SWITCH", "PORTS", "NEIGHBORS", "SECONDS"]
    assert lines[1][:5] == ["127.0.0.1", "ok", "switch-1", "2", "2"]
    assert [path.name for path in out.iterdir()] == [f"switch-{mac(1).hex()}.yaml"]
    assert "tree" not in run("tree", "--reports", out).err


def test_it_keeps_the_last_complete_report_of_a_switch_with_a_partial_walk(
    agent: SnmpAgent, tmp_path: Path
) -> None:
    out = tmp_path / "reports"
    config = write_config(tmp_path, agent.port)
    assert walk(config, "--out", out).code == ExitCode.OK
    (file,) = out.iterdir()
    whole = file.read_bytes()
    with SnmpAgent(switch_rows(1)[:3], community=COMMUNITY, manner=Manner.TIRING) as other:
        config = write_config(tmp_path, other.port)
        part = walk(config, "--out", out)
        assert part.code == ExitCode.SKIPPED
        assert "switch 127.0.0.1: partial: error status noAccess" in part.err
        assert file.read_bytes() == whole
        assert walk(config, "--out", tmp_path / "fresh").code == ExitCode.SKIPPED
    (report,) = read_reports(tmp_path / "fresh").values
    assert [row.outcome for row in report.status.collectors] == ["failed"]


def test_it_names_silent_switches_and_shows_no_secret(agent: SnmpAgent, tmp_path: Path) -> None:
    with SnmpAgent([], community=COMMUNITY) as blind:
        ran = walk(write_config(tmp_path, agent.port, blind.port), "-o", "json")
    assert ran.code == ExitCode.SKIPPED
    assert len(ran.document["items"]) == 1
    assert "switch 127.0.0.1: refused: it answers, but shows none of the tables" in ran.err
    assert COMMUNITY not in ran.err + ran.out


def test_it_prints_nothing_if_no_switch_answered(agent: SnmpAgent, tmp_path: Path) -> None:
    config = write_config(tmp_path, agent.port, community="mistyped")
    ran = walk(config, "-o", "json", "--deadline", "200ms")
    assert (ran.code, ran.out) == (ExitCode.NOTHING, "")
    assert "switch 127.0.0.1: unreachable: the walk did not end within 0.2 s" in ran.err
    assert "error: no switch returned any data" in ran.err
    assert "mistyped" not in ran.err


def test_it_warns_of_secrets_that_other_users_can_read(agent: SnmpAgent, tmp_path: Path) -> None:
    config = write_config(tmp_path, agent.port)
    (tmp_path / "community").chmod(0o644)
    ran = walk(config)
    assert ran.code == ExitCode.SKIPPED
    assert f"{tmp_path}/community: other users can read this secret: chmod 600" in ran.err


@pytest.mark.parametrize(
    ("secret", "problem"),
    [
        (None, "cannot be read"),
        (b"", "the secret is empty"),
        (b"\n", "the secret is empty"),
        (b"\xff\xfe", "must be one line of printable ASCII"),
        (b"\xef\xbb\xbfpublic\n", "must be one line of printable ASCII"),
        (b"public\nprivate\n", "must be one line of printable ASCII"),
        (b"x" * 5000, "larger than 4096 bytes"),
    ],
    ids=[
        "is missing",
        "is empty",
        "holds a line end alone",
        "is no text",
        "begins with a mark",
        "has two lines",
        "is no secret",
    ],
)
def test_it_refuses_a_secret_that(secret: bytes | None, problem: str, tmp_path: Path) -> None:
    config = write_config(tmp_path, 1)
    (tmp_path / "community").unlink()
    if secret is not None:
        (tmp_path / "community").write_bytes(secret)
    ran = walk(config)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert problem in ran.err


def test_it_prints_what_it_cannot_write(agent: SnmpAgent, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    out = tmp_path / "file" / "reports"
    ran = walk(write_config(tmp_path, agent.port), "--out", out, "-o", "json")
    assert ran.code == ExitCode.INTERNAL
    assert len(ran.document["items"]) == 1
    assert "cannot write" in ran.err


def test_it_does_not_wait_for_a_secret_that_is_a_pipe(tmp_path: Path) -> None:
    config = write_config(tmp_path, 1)
    (tmp_path / "community").unlink()
    os.mkfifo(tmp_path / "community")
    ran = walk(config)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "community: not a regular file" in ran.err


def test_it_reports_a_name_that_cannot_be_resolved(tmp_path: Path) -> None:
    config = write_config(tmp_path, 1)
    config.write_text(config.read_text().replace("127.0.0.1", "no..name"))
    ran = walk(config)
    assert ran.code == ExitCode.NOTHING
    assert "switch no..name: unreachable: no such host: its name cannot be resolved" in ran.err


def test_it_refuses_a_malformed_list(tmp_path: Path) -> None:
    config = tmp_path / "switches.yaml"
    config.write_text("switches: [10.0.0.1]\n")
    ran = walk(config)
    assert ran.code == ExitCode.USAGE
    assert "switches.yaml: switches.0: expected a mapping" in ran.err
