"""The command line: one module a verb; it parses, calls one function, renders."""
