"""The benchmark opens a real page; how long it takes is its own business and no test's."""

import json

import pytest
from click.testing import CliRunner

from tests.bench.page import main


@pytest.mark.lab
@pytest.mark.xdist_group("page")
def test_it_measures_a_page_with_its_painting() -> None:
    ran = CliRunner().invoke(main, ["--hosts", "64", "--rails", "2", "-o", "json"])
    assert ran.exit_code == 0, ran.output
    (found,) = json.loads(ran.stdout)
    assert (found["num_hosts"], found["num_hcas"]) == (64, 128)
    assert found["first_picture_ms"] > 0
    assert found["num_bytes"] > 10_000
