"""The kinds of findings, one module per subject; ``findings.catalogue`` puts them together."""
