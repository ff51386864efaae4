"""What happens to a lab test where its tools are missing."""

import pytest

from tests.lab.tools import require_tools


def test_it_skips_a_lab_and_names_the_command_that_enables_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"no-such-tool.*make lab-deps"):
        require_tools("sh", "no-such-tool")


def test_it_fails_a_lab_in_ci_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no-such-tool"):
        require_tools("no-such-tool")


def test_it_lets_a_lab_run_whose_tools_are_there() -> None:
    require_tools("sh")
