"""EVCLUS, k-EVCLUS and k-CEVCLUS: pairs, row programs, start, sweeps, estimator."""
