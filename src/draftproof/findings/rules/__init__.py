"""The rules, one module per subject; ``findings.check`` holds their one order."""
