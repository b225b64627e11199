"""What the methods built on Gaussian processes share: integrals, fits, searches and samplers.

Points are in prior units z = (x - prior mean) / prior SD, where the prior is N(z; 0, I).
"""
