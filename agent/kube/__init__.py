"""The API server as the place of reports, over the standard library alone: agents stay light."""
