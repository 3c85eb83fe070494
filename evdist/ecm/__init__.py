"""Evidential c-means and its relatives with prototypes: ECM, CECM, RECM, SECM, CCM, BCM, BPEC."""
