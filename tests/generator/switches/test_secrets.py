"""Which secret files count as readable by other users."""

import os
from pathlib import Path

import pytest

from generator.switches.targets import read_targets

CONFIG = "switches:\n  - addresses: [10.0.0.1]\n    communityFile: community\n"


@pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root to change the owner of a file: run make test as root"
)
@pytest.mark.parametrize(
    ("owner", "mode", "num_warnings"),
    [
        pytest.param(0, 0o600, 0, id="ours alone"),
        pytest.param(0, 0o640, 1, id="ours, and open to a group"),
        pytest.param(65532, 0o440, 0, id="another's, and open to our group as a kubelet makes it"),
        pytest.param(65532, 0o444, 1, id="another's, and open to everybody"),
    ],
)
def test_it_warns_of_secrets_that_other_users_can_read(
    owner: int, mode: int, num_warnings: int, tmp_path: Path
) -> None:
    config, secret = tmp_path / "switches.yaml", tmp_path / "community"
    config.write_text(CONFIG)
    secret.write_text("public\n")
    secret.chmod(mode)
    os.chown(secret, owner, 0)
    assert len(read_targets(config).problems) == num_warnings
