"""Which tests start."""

import pytest

from tests.effort import END_VARIABLE, require_time


def test_it_skips_a_test_that_would_start_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(END_VARIABLE, "1000")
    with pytest.raises(pytest.skip.Exception, match="no time left"):
        require_time(1001.0)


@pytest.mark.parametrize("end", ["1000", ""], ids=["there is time left", "there is no limit"])
def test_it_starts_a_test_if(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(END_VARIABLE, end)
    require_time(999.0)
