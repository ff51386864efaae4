"""Version 1: what proto files of this folder give, by `make proto`."""
