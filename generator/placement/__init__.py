"""Where a gang should run: request, capacity, objective, engine, presets. Pure."""
