"""Prefect flows: thin doors onto `evdist.run`. They carry URLs and scalars, never arrays."""
