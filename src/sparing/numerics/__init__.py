"""Numbers: linear algebra, random streams and sequences, sampling; nothing of the problem."""
