"""EGMM: an evidential Gaussian mixture, with a component for every set of clusters."""
