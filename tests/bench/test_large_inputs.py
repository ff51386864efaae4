"""The benchmark of large inputs runs, and checks the exit codes of the commands that it times."""

import pytest

from generator.cli.exit_codes import ExitCode
from tests.bench.large_inputs import (
    WORKLOADS,
    Workload,
    measure_command,
)
from tests.bench.measurement import WrongResultError


@pytest.mark.parametrize("name", WORKLOADS)
def test_it_measures_every_command(name: str) -> None:
    figure = measure_command(name, 64)
    assert (figure.name, figure.num_rows) == (name, 64)
    assert min(figure.seconds, figure.peak_bytes, figure.output_bytes) > 0


def test_it_times_no_command_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "inspect a list of nodes"
    wrong = Workload((8,), WORKLOADS[name].write, ExitCode.CHECK_FAILED)
    monkeypatch.setitem(WORKLOADS, name, wrong)
    with pytest.raises(WrongResultError, match="8 rows: 0: "):
        measure_command(name, 8)
