"""What the exit codes of `toponaut` mean; scripts rely on them."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Infeasible placements and findings are answers, not failures."""

    OK = 0
    INTERNAL = 1
    USAGE = 2
    """Usage, configuration or an invalid request; click's own too."""
    SKIPPED = 3
    """Answered, but some input was skipped."""
    NOTHING = 4
    """Nothing usable was read."""
    CHECK_FAILED = 5
    """`--check` or `verify` asked, and the answer is no; or `apply` asked for a held plan."""
