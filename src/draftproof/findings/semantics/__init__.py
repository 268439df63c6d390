"""What published versions of engines make of a drafter's values: one table, each row with its source."""
