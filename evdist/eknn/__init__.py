"""Evidential nearest neighbours: EKNNclus and the evidential classifiers."""
