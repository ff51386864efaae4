"""`python -m generator` is `toponaut`."""

from generator.cli import main

if __name__ == "__main__":
    main()
