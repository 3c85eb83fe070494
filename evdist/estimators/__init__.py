"""The scikit-learn face of evdist, one module per estimator; `evdist.NAME` imports them lazily."""
