"""What the node can be asked, one module per source; independent of each other."""
