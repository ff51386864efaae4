"""Text or bytes to facts, one module per format, never any I/O."""
