"""BUILD: which copy of an engine would be imported, whether it is whole, and what it can do."""
