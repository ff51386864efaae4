"""Few decisions of each preset: no preset is better than what `optimal` proves."""

import pytest

from generator.placement.presets import Preset
from tests.quality.kueue_mix import measure_mix
from tests.quality.victims import measure_victims

QUICK = (Preset.OPTIMAL, Preset.KUEUE, Preset.KUBERNETES)


@pytest.mark.parametrize("preset", QUICK)
def test_no_preset_uses_fewer_racks_than_optimal(preset: Preset) -> None:
    found = measure_mix(preset, 40)
    assert found.num_placed == found.num_gangs
    assert found.num_racks >= found.least_racks
    assert preset is not Preset.OPTIMAL or found.num_lowest == found.num_placed


@pytest.mark.parametrize("preset", QUICK)
def test_no_preset_preempts_fewer_pods_than_are_proved(preset: Preset) -> None:
    found = measure_victims(preset, 3)
    assert found.num_placed == found.num_cases > 0
    assert found.least_victims <= found.num_victims <= found.num_for_topology
