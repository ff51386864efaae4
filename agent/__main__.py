"""`python -m agent` runs `toponaut-agent`."""

from __future__ import annotations

from agent.cli.main import main

if __name__ == "__main__":
    main()
