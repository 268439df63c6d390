"""One module a dialect: how each family of files spells the same drafter."""
