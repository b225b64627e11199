"""What runs hand over, what several of them say together, and the files they are kept in."""
