"""EVCLUS on a GPU: sampling, landmark start, sweeps and prediction with NumPy and torch alone.

And the intervals of Bootclus, whose sweeps are the same with two residuals for each pair.

Nothing here imports numba, Dask or zarr, so that it runs on a bare machine with a GPU; and nothing
is imported by the rest of the package unless a device is asked for.
"""
