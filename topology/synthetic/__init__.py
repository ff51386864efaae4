"""A fabric specification becomes devices, cables, faults, the true tree, and what tools print."""
