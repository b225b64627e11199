"""States and results as arrays and plain JSON values, and back: no pickle, no code from a file."""
