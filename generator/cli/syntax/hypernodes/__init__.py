"""The options and the help of `adopt` and `lint`."""
