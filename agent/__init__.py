"""The agent: one per node, collects what the node's ports see and publishes a NeighborReport."""
