"""The options and the help of `tree`, `planes`, `findings` and `describe`."""
