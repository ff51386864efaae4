"""The command line, in this process and as a program of its own.

Real small programs stand in for lldpcli and ibnetdiscover; sysfs is a planted tree.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess  # noqa: TID251 - the program is the thing under test
import sys
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from agent.cli.commands import cli
from agent.collectors.frames import SystemInterfaces
from tests.agent.nodes import card, chassis, heard, plant
from tests.agent.programs import write_answering, write_program
from topology.model.ids import short_name
from topology.reports.fabric_status import FabricStatus, render_fabric
from topology.reports.neighbor_report import SweepStanding, parse_report

pytestmark = pytest.mark.wheel

MAC = "b8:ce:f6:00:00:01"
FABRIC = (
    'Switch 40 "S-0002c90000000001" # "leaf\x1b"\n[1] "S-0002c90000000002"[1] # "x" lid 1 4xHDR\n'
    '\nSwitch 40 "S-0002c90000000002" # "x"\n[1] "S-0002c90000000001"[1] # "leaf" lid 2 4xHDR\n'
)


class Bench:
    """A node whose sources a test can make answer, fail or vanish."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sysfs = plant(root / "sys", card("eth0", "0000:03:00.0", MAC))
        answers = {"neighbors": heard(("eth0", "leaf\x1b1", "swp1")), "chassis": chassis(MAC)}
        self.lldpcli = write_answering(root / "lldpcli", answers)

    @property
    def options(self) -> list[str]:
        values = {"node-name": "node01", "sysfs-root": self.sysfs, "lldpcli": self.lldpcli}
        # This machine's own ports and GPUs are no part of the bench.
        values |= {"frames": "never", "nvidia-smi": "no-nvidia-smi"}
        return [word for name, value in values.items() for word in (f"--{name}", str(value))]

    def sweeping(self, body: str) -> list[str]:
        program = write_program(self.root / "sweeper", body)
        return ["--sweep", "always", "--sweep-command", f"'{program}' -P 1"]

    def once(self, *words: str, env: dict[str, str] | None = None) -> Result:
        return CliRunner(env=env).invoke(cli, ["once", *self.options, *words])


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_it_prints_one_list_of_valid_reports(bench: Bench) -> None:
    result = bench.once("-o", "json", *bench.sweeping(f"print({FABRIC!r})"))
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert (document["kind"], document["apiVersion"]) == ("List", "v1")
    node, part = map(parse_report, document["items"])
    assert (node.metadata.name, part.metadata.name) == ("node01", "node01.sweep.0")
    assert node.spec.ports[0].neighbors[0].name == "leaf\x1b1"
    assert part.spec.sweep is not None


def test_it_prints_the_same_as_yaml(bench: Bench) -> None:
    documents = []
    for form in ("json", "yaml"):
        document = yaml.safe_load(bench.once("-o", form).stdout)
        document["items"][0]["status"].pop("observedAt")
        documents.append(document)
    assert documents[0] == documents[1]


def test_it_sweeps_if_the_store_elects_it(bench: Bench) -> None:
    program = write_program(bench.root / "sweeper", f"print({FABRIC!r})")
    sweeper = {"subnet": "fe80000000000009", "node": "node01", "device": "mlx5_2", "port": 1}
    store = bench.root / "store"
    words = ("--store", str(store), "--sweep-command", str(program), "-o", "json")
    seen = []
    for name, role in (("node02", "elected"), ("node01", "spare"), ("node01", "elected")):
        (store / "fabrics").mkdir(parents=True, exist_ok=True)
        row = sweeper | {"node": name, "role": role}
        status = FabricStatus.model_validate({"sweepers": [row]})
        (store / "fabrics" / "default.yaml").write_text(json.dumps(render_fabric(status)))
        result = bench.once(*words)
        assert result.exit_code == 0, result.output
        seen.append([parse_report(item) for item in json.loads(result.stdout)["items"]])
    (other,), (spare, confirmation), (elected, part) = seen
    assert other.status.sweeping == spare.status.sweeping == elected.status.sweeping
    assert other.status.sweeping == SweepStanding(able=True)
    assert confirmation.spec == part.spec
    assert part.spec.sweep is not None
    assert part.spec.sweep.subnet == "fe80000000000009"


def test_it_prints_a_summary_for_people(bench: Bench) -> None:
    result = bench.once(*bench.sweeping(f"print({FABRIC!r})"))
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["node", "node01"]
    assert ["mac", MAC] in lines
    assert ["eth0", "ethernet", "up", "25G", r"leaf\x1b1", "swp1", "lldp"] in lines
    assert lines[-7:] == [
        ["COLLECTOR", "OUTCOME", "MESSAGE"],
        ["net_sysfs", "ok"],
        ["ib_sysfs", "no-data", "no", "InfiniBand", "or", "RoCE", "device"],
        ["lldpd", "ok"],
        ["firmware_lldp", "no-data", "no", "card", "with", "its", "own", "LLDP", "agent"],
        ["nvlink", "no-data", "no-nvidia-smi", "not", "found"],
        ["ib_sweep", "ok"],
    ]
    assert "of subnet fe80000000000000: 1 part" in result.stdout
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(
    ("broken", "words", "exit_code"),
    [
        pytest.param((), (), 0, id="0 when all answered"),
        pytest.param(("lldpcli",), (), 0, id="0 when one never was there"),
        pytest.param(("lldpcli.neighbors",), (), 3, id="3 when one failed"),
        pytest.param(("sys", "lldpcli.neighbors"), (), 4, id="4 when none found anything"),
        pytest.param((), ("--node-name", "Not_A_Name"), 2, id="2 for an impossible node"),
        pytest.param((), ("--sweep-command", "'"), 2, id="2 for half a command line"),
        pytest.param((), ("--sweep-subnet", "?"), 2, id="2 for an impossible subnet"),
        pytest.param((), ("--sweep", "elected"), 2, id="2 for an election without a source"),
    ],
)
def test_it_exits_with(
    bench: Bench, broken: tuple[str, ...], words: tuple[str, ...], exit_code: int
) -> None:
    for name in broken:
        (bench.root / name).rename(bench.root / f"{name}.away")
    assert bench.once(*words).exit_code == exit_code


@pytest.mark.parametrize(
    ("body", "exit_code"),
    [
        pytest.param(f"print({FABRIC!r} + '[2] ???')", 3, id="3 when a line was unreadable"),
        pytest.param("sys.exit('broken')", 3, id="3 when it failed"),
        pytest.param(
            f"print({FABRIC!r}); print('x timed out', file=sys.stderr)", 0, id="0 when partial"
        ),
        pytest.param(
            'sys.exit("can\'t open UMAD port ((null):0)")', 0, id="0 without any hardware"
        ),
    ],
)
def test_it_exits_after_a_sweep_with(bench: Bench, body: str, exit_code: int) -> None:
    assert bench.once(*bench.sweeping(body)).exit_code == exit_code


def test_it_still_prints_the_report_when_all_failed(bench: Bench) -> None:
    bench.sysfs.rename(bench.root / "away")
    (bench.root / "lldpcli.neighbors").unlink()
    result = bench.once("-o", "json")
    assert result.exit_code == 4
    (report,) = json.loads(result.stdout)["items"]
    outcomes = [one["outcome"] for one in report["status"]["collectors"]]
    assert outcomes == ["failed", "failed", "failed", "no-data", "no-data"]
    assert "observedAt" not in report["status"]


@pytest.mark.parametrize(
    ("name", "words", "env"),
    [
        pytest.param("n7", ("--node-name", "n7"), {"NODE_NAME": "n8"}, id="an option first"),
        pytest.param(
            "n7", (), {"TOPONAUT_AGENT_NODE_NAME": "n7", "NODE_NAME": "n8"}, id="then its variable"
        ),
        pytest.param("n8", (), {"NODE_NAME": "n8"}, id="then what Kubernetes sets"),
        pytest.param(short_name(socket.gethostname()), (), {}, id="then the machine's name"),
    ],
)
def test_it_reads_the_name_of_the_node_from(
    bench: Bench, name: str, words: tuple[str, ...], env: dict[str, str]
) -> None:
    settled = dict.fromkeys(("TOPONAUT_AGENT_NODE_NAME", "NODE_NAME")) | env
    others = {
        "TOPONAUT_AGENT_SYSFS_ROOT": str(bench.sysfs),
        "TOPONAUT_AGENT_LLDPCLI": str(bench.lldpcli),
        "TOPONAUT_AGENT_OUTPUT": "json",
    }
    result = CliRunner(env=settled | others).invoke(cli, ["once", *words])
    assert result.exit_code == 0, result.output
    (item,) = json.loads(result.stdout)["items"]
    assert item["metadata"]["name"] == name
    assert item["spec"]["device"]["name"] == name


def test_it_refuses_a_machine_name_that_is_invalid_for_a_node(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "a_b")
    env = dict.fromkeys(("TOPONAUT_AGENT_NODE_NAME", "NODE_NAME"))
    result = CliRunner(env=env).invoke(cli, ["once", "--sysfs-root", str(bench.sysfs)])
    assert result.exit_code == 2
    assert "set --node-name" in result.stderr


def test_it_splits_the_variable_of_a_repeated_option_at_blanks(bench: Bench) -> None:
    plant(bench.sysfs, {f"class/net/{name}/type": "1" for name in ("veth1", "tap1", "br0")})
    result = bench.once("-o", "json", env={"TOPONAUT_AGENT_INTERFACES": "veth* tap*"})
    (item,) = json.loads(result.stdout)["items"]
    assert [port["name"] for port in item["spec"]["ports"]] == ["eth0", "tap1", "veth1"]


def test_it_gives_commands_only_the_variables_that_are_named(bench: Bench) -> None:
    body = f"print({FABRIC!r}) if os.environ.get('SEEN') == '1' and 'HOME' not in os.environ else 0"
    env = {"SEEN": "1", "HOME": "/h"}
    assert bench.once(*bench.sweeping(body), env=env).exit_code == 3
    assert bench.once(*bench.sweeping(body), "--pass-env", "SEEN", env=env).exit_code == 0


def test_it_shows_the_id_of_a_neighbor_without_a_name(bench: Bench) -> None:
    nameless = heard(("eth0", "", "")).replace('"name": [{"value": ""}]', '"x": []')
    (bench.root / "lldpcli.neighbors").write_text(nameless)
    assert "02:aa:00:00:00:00" in bench.once().stdout


def test_it_lists_the_collectors_for_programs(bench: Bench) -> None:
    result = CliRunner().invoke(cli, ["collectors", *bench.options, "-o", "json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == [
        {"name": "net_sysfs", "available": True, "reason": ""},
        {"name": "ib_sysfs", "available": False, "reason": "no InfiniBand or RoCE device"},
        {"name": "lldpd", "available": True, "reason": ""},
        {
            "name": "firmware_lldp",
            "available": False,
            "reason": "no card with its own LLDP agent",
        },
        {"name": "nvlink", "available": False, "reason": "no-nvidia-smi not found"},
        {"name": "ib_sweep", "available": False, "reason": "sweeping is off (see --sweep)"},
        {
            "name": "frames",
            "available": False,
            "reason": "listening is off (see --frames and --listen-for)",
        },
    ]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        pytest.param(("--frames", "auto"), "not needed: lldpd answers (--frames auto)", id="auto"),
        pytest.param(("--frames", "always"), "", id="always"),
        pytest.param(
            ("--frames", "always", "--listen-for", "0s"),
            "listening is off (see --frames and --listen-for)",
            id="for no time at all",
        ),
    ],
)
def test_it_listens_to_frames_as_the_options_say(
    bench: Bench, words: tuple[str, ...], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SystemInterfaces, "explain_refusal", lambda _: None)
    result = CliRunner().invoke(cli, ["collectors", *bench.options, *words, "-o", "json"])
    assert json.loads(result.stdout)[-1] == {
        "name": "frames",
        "available": not reason,
        "reason": reason,
    }


def test_it_lists_the_collectors_for_people(bench: Bench) -> None:
    result = CliRunner().invoke(cli, ["collectors", *bench.options])
    assert result.stdout.splitlines()[:3] == [
        "COLLECTOR      AVAILABLE  REASON",
        "net_sysfs      yes",
        "ib_sysfs       no         no InfiniBand or RoCE device",
    ]


def test_it_refuses_a_folder_that_it_cannot_write(bench: Bench) -> None:
    (bench.root / "file").touch()
    folder = str(bench.root / "file" / "below")
    result = CliRunner().invoke(cli, ["run", *bench.options, "--publish", folder])
    assert result.exit_code == 1
    assert "Not a directory" in result.stderr


def test_it_is_a_program(bench: Bench) -> None:
    command = [sys.executable, "-m", "agent", "once", *bench.options, "-o", "json", "-v"]
    ended = subprocess.run(  # noqa: PLW1510 - the exit code is asserted
        command, capture_output=True, timeout=60, env={"PATH": os.environ["PATH"]}
    )
    assert ended.returncode == 0, ended.stderr
    (item,) = json.loads(ended.stdout)["items"]
    assert item["metadata"]["name"] == "node01"
    events = [json.loads(line)["event"] for line in ended.stderr.splitlines()]
    assert events == ["collector finished"] * 5


def test_it_prints_its_version() -> None:
    result = CliRunner().invoke(cli, ["--version"])
    assert result.stdout.startswith("toponaut-agent, version ")


def test_it_loads_nothing_heavy_to_collect_once(bench: Bench) -> None:
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from agent.cli.commands import cli\n"
        f"CliRunner().invoke(cli, {['once', *bench.options, '-o', 'json']!r})\n"
        "heavy = {'numpy', 'grpc', 'rich', 'apscheduler', 'yaml', 'generator'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=60, check=True
    )
    assert ended.stdout == b"[]\n"


@pytest.mark.parametrize(
    ("words", "is_listening"),
    [
        pytest.param((), False, id="by default"),
        pytest.param(("--listen-for", "31s"), True, id="with a time to listen"),
        pytest.param(("--frames", "always"), True, id="with the mode always"),
    ],
)
def test_it_returns_at_once_without_listening(
    bench: Bench, words: tuple[str, ...], *, is_listening: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SystemInterfaces, "explain_refusal", lambda _: "no right to")
    result = bench.once("--lldpcli", "none", "--frames", "auto", *words, "-o", "json")
    outcomes = json.loads(result.stdout)["items"][0]["status"]["collectors"]
    assert ("frames" in {one["name"] for one in outcomes}) is is_listening


@pytest.mark.parametrize("name", ["once", "run", "collectors"])
def test_it_names_the_variable_after_the_option(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command = cli.commands[name]
    context = click.Context(command, **command.context_settings)
    options = [one for one in command.params if isinstance(one, click.Option)]
    assert options
    for option in options:
        own = "TOPONAUT_AGENT_" + option.opts[0].removeprefix("--").replace("-", "_").upper()
        monkeypatch.setenv(own, "given")
        assert option.resolve_envvar_value(context) == "given"
