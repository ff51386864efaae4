"""The generator: one per cluster, turns reports into a tree, HyperNodes and placements."""
