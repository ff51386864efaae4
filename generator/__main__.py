"""`python -m generator` is `toponaut`."""

from generator.cli.main import main

if __name__ == "__main__":
    main()
