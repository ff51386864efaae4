"""The core both programs share: facts, fabric, tiers, tree. Pure: no I/O, clock or randomness."""
