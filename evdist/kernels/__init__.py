"""One block of one algorithm: arrays in, arrays out, in compiled code."""
