"""One rank of an allreduce of PyTorch's gloo, started by mpirun: `gloo_member MEETING FLOATS`.

MEETING is a file in which the ranks find each other. Each rank prints its seconds.
"""

import os
import sys
import time
from datetime import timedelta

import torch
from torch import distributed

TIMEOUT = timedelta(seconds=90)


def main(meeting: str, num_floats: int) -> None:
    """Sum an array over all ranks, and print the seconds."""
    rank, size = (int(os.environ[f"OMPI_COMM_WORLD_{name}"]) for name in ("RANK", "SIZE"))
    distributed.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=size, timeout=TIMEOUT
    )
    values = torch.full((num_floats,), float(rank + 1))
    distributed.barrier()
    started_s = time.monotonic()
    distributed.all_reduce(values)
    duration_s = time.monotonic() - started_s
    if not bool((values == size * (size + 1) / 2).all()):
        raise AssertionError("wrong sum")
    sys.stdout.write(f"{duration_s}\n")  # at once: all ranks write to one pipe
    sys.stdout.flush()
    distributed.barrier()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
