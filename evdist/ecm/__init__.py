"""Evidential c-means and its relatives with prototypes: ECM, CECM, RECM, CCM, BPEC."""
