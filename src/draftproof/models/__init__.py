"""Forward passes of the targets: nothing here samples, nothing here loops over tokens."""
