"""A tree rendered for its consumers, one module per consumer. Pure."""
