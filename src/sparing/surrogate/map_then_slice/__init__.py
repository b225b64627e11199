"""How the paper trains the surrogate: maximum a posteriori, then slice sampling."""
