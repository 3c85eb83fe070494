"""Where sweeps run: the threads of one process, or the workers of a Dask cluster."""
