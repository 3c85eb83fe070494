"""What every algorithm shares: the loop, progress, memory, devices, workers."""
