"""Row programs: the backends of EVCLUS behind the protocol `evdist.evclus.rows.protocol.Rows`.

`numba` runs them on threads, `device` on a torch device: with the CUDA kernels of `rows.cu` where
they reach, else with those in torch.
"""
