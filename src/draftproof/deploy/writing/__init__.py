"""One file put in place, or refused, or put back."""
