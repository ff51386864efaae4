"""The options and the help of `explain`, `schema` and `completion`."""
