"""From a source of dissimilarities to a solution: sample, start, sweep, stop."""
