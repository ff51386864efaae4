"""The commands of `toponaut`, one module per command; each is loaded when it is called."""
