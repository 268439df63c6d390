"""An engine started, read out, held against its plan, and stopped again unless it is right and wanted."""
