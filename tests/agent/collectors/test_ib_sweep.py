"""The sweep of an InfiniBand subnet, from answers of ibnetdiscover."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.collectors import ib_sweep
from agent.collectors.probe import CollectedFacts, SourceAbsent, SweepFailed
from agent.node.command import CommandLimits
from agent.settings import SweepTarget
from tests.agent.fakes import Answer, FakeRunner, printed
from tests.agent.nodes import SWEEP, plant, settings_for
from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from topology.model.errors import CommandMissing, CommandTimeout
from topology.model.facts import Device, DeviceKind
from topology.synthetic.sweep_output import render_ibnetdiscover

FABRIC = """
switchguid=0x2c90000000001(2c90000000001)
Switch\t40 "S-0002c90000000001"\t\t# "leaf-1" enhanced port 0 lid 1 lmc 0
[1]\t"H-0002c90100000001"[1](2c90100000002) \t\t# "node01 mlx5_0" lid 2 4xHDR

caguid=0x2c90100000001
Ca\t1 "H-0002c90100000001"\t\t# "node01 mlx5_0"
[1](2c90100000002) \t"S-0002c90000000001"[1]\t\t# lid 2 lmc 0 "leaf-1" lid 1 4xHDR
"""
ALONE = FABRIC[FABRIC.index("caguid") :]


def collect(answer: Answer, root: Path = Path("/nowhere"), **changes: object) -> CollectedFacts:
    settings = settings_for(root, sweep=SWEEP._replace(**changes))  # type: ignore[arg-type] # tests
    return ib_sweep.collect(settings, FakeRunner({"ibnetdiscover": answer}))


def test_it_returns_the_fabric_in_canonical_form() -> None:
    found = collect(printed("# Topology file\n#\r\n" + FABRIC.replace("lid 2", "lid 77")))
    devices = parse_ibnetdiscover(FABRIC.encode()).devices
    assert found.sweeps == (("fe80000000000000", render_ibnetdiscover(devices)),)
    assert len(devices) == 2
    assert (found.errors, found.note) == ((), "")


def test_it_runs_the_command_as_given_within_its_own_limits() -> None:
    runner = FakeRunner({"ibnetdiscover": printed(FABRIC)})
    sweep = SWEEP._replace(command=("ibsim-run", "ibnetdiscover", "-P", "1"), deadline_s=99)
    ib_sweep.collect(settings_for(Path("/nowhere"), sweep=sweep), runner)
    assert runner.asked == [("ibsim-run", "ibnetdiscover", "-P", "1")]
    assert runner.limits == [CommandLimits(99, SWEEP.max_output_bytes)]


def test_it_keeps_a_sweep_that_lost_answers_and_notes_it() -> None:
    lost = "src/query_smp.c:195; umad (DR path slid 0) timed out\n" * 3 + "attached as client 0\n"
    found = collect(printed(FABRIC, stderr=lost))
    assert len(found.sweeps) == 1
    assert found.note == "partial: 3 queries timed out"


@pytest.mark.parametrize("num_lines", range(4, FABRIC.count("\n")))
def test_it_publishes_no_cut_sweep(num_lines: int) -> None:
    cut = "".join(FABRIC.splitlines(keepends=True)[:num_lines])
    try:
        collected = collect(printed(cut))
    except SweepFailed:
        return
    assert collected.sweeps == collect(printed(FABRIC)).sweeps


def test_it_counts_lines_that_it_could_not_read() -> None:
    found = collect(printed(FABRIC + "[2]\t???\n"))
    assert len(found.sweeps) == 1
    assert len(found.errors) == 1


NO_SELF = (
    "ibwarn: [9] mad_rpc: _do_madrpc failed; dport (DR path slid 0; dlid 0; 0)\n"
    "./libibnetdisc/ibnetdisc.c:811; Failed to resolve self\n"
    "ibnetdiscover: iberror: failed: discover failed\n"
)
NO_SWITCH = (
    "./libibnetdisc/query_smp.c:186; umad (DR path slid 0; dlid 0; 0,1 Attr 0x11:0) bad status "
    "110; Connection timed out\n"
)


@pytest.mark.parametrize(
    ("answer", "failed", "refused", "message"),
    [
        pytest.param(
            printed(FABRIC, stderr="oops\n", exit_code=1),
            1, 0, "ibnetdiscover: exit 1: oops", id="failed by its exit code, with any output",
        ),
        pytest.param(printed(b""), 1, 0, "found no switch", id="failed when nothing is printed"),
        pytest.param(
            printed(ALONE), 1, 0, "found no switch", id="failed when it sees itself without a loss"
        ),
        pytest.param(
            printed(ALONE, stderr=NO_SWITCH), 0, 1,
            r"every query \(1\) timed out", id="refused when it sees itself and the rest is lost",
        ),
        pytest.param(
            printed(b"", stderr=NO_SELF, exit_code=255), 0, 1,
            "every query timed out.*: exit 255", id="refused when not even its own HCA answers",
        ),
        pytest.param(
            printed(b"", stderr=NO_SWITCH + "discover failed\n", exit_code=255), 0, 1,
            r"every query \(1\) timed out", id="refused when all is lost and nothing printed",
        ),
        pytest.param(printed("garbage\x00\n"), 1, 0, "no switch", id="failed on garbage"),
        pytest.param(CommandTimeout("late"), 1, 0, "late", id="failed when late"),
        pytest.param(CommandMissing("gone"), 1, 0, "gone", id="failed when not installed"),
    ],
)  # fmt: skip
def test_it_is(answer: Answer, failed: int, refused: int, message: str) -> None:
    with pytest.raises(SweepFailed, match=message) as caught:
        collect(answer)
    lost = (caught.value.failed, caught.value.refused)
    assert lost == (("fe80000000000000",) * failed, ("fe80000000000000",) * refused)


def test_it_is_absent_without_a_device() -> None:
    complaint = "ibwarn: [9] mad_rpc_open_port: can't open UMAD port ((null):0)\nfailed\n"
    with pytest.raises(SourceAbsent, match="ibnetdiscover: exit 255: failed"):
        collect(printed(b"", stderr=complaint, exit_code=255))


ONE, TWO_ = SweepTarget("fe80000000000001", "mlx5_0", 1), SweepTarget("fe80000000000002", "ib7", 2)


def elected(answers: dict[str, Answer], *targets: SweepTarget) -> tuple[CollectedFacts, FakeRunner]:
    runner = FakeRunner(answers)
    settings = settings_for(Path("/nowhere"), sweep=SWEEP._replace(targets=targets))
    return ib_sweep.collect(settings, runner), runner


def test_it_sweeps_its_elected_subnets_from_the_elected_ports() -> None:
    found, runner = elected({"ibnetdiscover": printed(FABRIC)}, ONE, TWO_)
    assert runner.asked == [
        ("ibnetdiscover", "-C", "mlx5_0", "-P", "1"),
        ("ibnetdiscover", "-C", "ib7", "-P", "2"),
    ]
    assert [one.subnet for one in found.sweeps] == [ONE.subnet, TWO_.subnet]
    assert (found.note, found.failed_subnets, found.refused_subnets) == ("", (), ())


@pytest.mark.parametrize(
    ("answer", "failed", "refused", "word"),
    [
        pytest.param(printed(ALONE, stderr=NO_SWITCH), (), (ONE.subnet,), "refused", id="refuses"),
        pytest.param(CommandTimeout("late"), (ONE.subnet,), (), "late", id="fails"),
    ],
)
def test_it_keeps_the_sweep_of_one_subnet_when_another(
    answer: Answer, failed: tuple[str, ...], refused: tuple[str, ...], word: str
) -> None:
    found, _ = elected({"mlx5_0": answer, "ib7": printed(FABRIC)}, ONE, TWO_)
    assert [one.subnet for one in found.sweeps] == [TWO_.subnet]
    assert (found.failed_subnets, found.refused_subnets) == (failed, refused)
    assert found.note.startswith(f"subnet {ONE.subnet}: {word}")


def test_it_reports_each_subnet_that_cannot_be_swept() -> None:
    answers: dict[str, Answer] = {"mlx5_0": CommandTimeout("late"), "ib7": CommandTimeout("late")}
    with pytest.raises(SweepFailed, match=f"subnet {ONE.subnet}: late; subnet {TWO_.subnet}: late"):
        elected(answers, ONE, TWO_)


def test_it_sweeps_nothing_when_not_elected() -> None:
    found, runner = elected({"ibnetdiscover": printed(FABRIC)})
    assert (found.is_empty, found.note, runner.asked) == (True, "not elected to sweep", [])


def test_it_is_absent_without_the_program_when_elected() -> None:
    with pytest.raises(SourceAbsent, match="is infiniband-diags installed"):
        elected({})


def port_of(name: str, number: int, prefix: str, **files: str) -> dict[str, str]:
    base = f"class/infiniband/{name}/ports/{number}"
    known = {
        "state": "4: ACTIVE",
        "link_layer": "InfiniBand",
        "gids/0": f"{prefix}:0000:0000:0000:b83f:d203:0011:aab0",
    }
    return {f"{base}/{path}": text for path, text in (known | files).items()}


TWO = port_of("mlx5_0", 1, "fec0") | port_of("mlx5_1", 1, "fec1") | port_of("mlx5_1", 2, "fec2")


@pytest.mark.parametrize(
    ("files", "command", "subnet"),
    [
        pytest.param({}, "ibnetdiscover", "fe80000000000000", id="the default without a port"),
        pytest.param(TWO, "ibnetdiscover", "fec0000000000000", id="of the first port"),
        pytest.param(
            TWO | port_of("mlx5_0", 1, "fec0", state="1: DOWN"),
            "ibnetdiscover",
            "fec1000000000000",
            id="of the first active port",
        ),
        pytest.param(
            TWO | port_of("mlx5_0", 1, "fec0", link_layer="Ethernet"),
            "ibnetdiscover",
            "fec1000000000000",
            id="of the first port that is no Ethernet",
        ),
        pytest.param(
            TWO | port_of("mlx5_0", 1, "0000"),
            "ibnetdiscover",
            "fec1000000000000",
            id="of the first port that has one",
        ),
        pytest.param(TWO, "ibnetdiscover -C mlx5_1", "fec1000000000000", id="of a given device"),
        pytest.param(TWO, "ibnetdiscover -C mlx5_1 -P 2", "fec2000000000000", id="of a given port"),
        pytest.param(
            TWO, "ibnetdiscover -C ../../x", "fe80000000000000", id="of no device beyond sysfs"
        ),
        pytest.param(TWO, "ibnetdiscover -C", "fec0000000000000", id="of an option without value"),
    ],
)
def test_it_reads_the_subnet(
    tmp_path: Path, files: dict[str, str], command: str, subnet: str
) -> None:
    plant(tmp_path, files)
    found = collect(printed(FABRIC), tmp_path, command=tuple(command.split()))
    assert [one.subnet for one in found.sweeps] == [subnet]


def test_it_uses_a_configured_subnet(tmp_path: Path) -> None:
    found = collect(printed(FABRIC), plant(tmp_path, TWO), subnet="fec0000000000009")
    assert [one.subnet for one in found.sweeps] == ["fec0000000000009"]


def test_it_finds_nothing_when_sweeping_is_off() -> None:
    settings, runner = (
        settings_for(Path("/nowhere")),
        FakeRunner({"ibnetdiscover": printed(FABRIC)}),
    )
    assert ib_sweep.collect(settings, runner).is_empty
    assert runner.asked == []
    assert str(ib_sweep.find_absence(settings, runner)) == "sweeping is off (see --sweep)"


def test_it_explains_why_it_cannot_sweep() -> None:
    settings = settings_for(Path("/nowhere"), sweep=SWEEP)
    assert ib_sweep.find_absence(settings, FakeRunner({"ibnetdiscover": printed(FABRIC)})) is None
    assert "is infiniband-diags installed?" in str(ib_sweep.find_absence(settings, FakeRunner()))


def test_it_restores_nothing_from_the_report_of_a_node() -> None:
    assert ib_sweep.restore(Device(DeviceKind.HOST, "n", ())).is_empty
