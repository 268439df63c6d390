"""The models of ``draftproof.models`` once more, over batches of whole sequences, to be differentiated."""
