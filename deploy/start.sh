#!/bin/sh
# Starts every container of the image: numba wants to write where it keeps compiled kernels, and the
# image's own are on a file system that may be read-only.
if [ -d /opt/evdist/kernels ] && [ ! -e "${NUMBA_CACHE_DIR:=/tmp/numba}" ]; then
    cp -R /opt/evdist/kernels "$NUMBA_CACHE_DIR" || rm -rf "$NUMBA_CACHE_DIR"
fi
exec "$@"
