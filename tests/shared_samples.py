"""Where outputs of real devices lie, for tests that need them.

They are foreign and stay outside the project; a checkout without them skips these tests.
"""

from pathlib import Path

import pytest

SAMPLES = Path(__file__).resolve().parents[2] / "shared" / "samples"
VECTORS = SAMPLES.parent / "vectors"

needs_samples = pytest.mark.skipif(
    not SAMPLES.is_dir(),
    reason="needs captures of real devices, which the project does not ship: "
    "put them into ../shared/samples, then run make test",
)
