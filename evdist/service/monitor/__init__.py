"""Jobs on the Dask dashboard and in Prometheus, all fed by the one progress protocol."""
