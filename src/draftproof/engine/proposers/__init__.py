"""Where drafts come from: one module for each method."""
