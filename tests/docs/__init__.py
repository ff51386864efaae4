"""The pages in docs/ and the README, as a reader uses them."""
