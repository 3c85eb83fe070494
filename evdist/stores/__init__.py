"""What lies on disk or in object storage: tables to read, and what a run keeps between its steps.

Names are taken from the modules (`evdist.stores.checkpoint`, `.fingerprints`, ...), so that who
needs one does not pay for the import of all.
"""
