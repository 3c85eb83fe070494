"""Bootclus: calibrated masses from a bootstrap of Gaussian mixtures."""
