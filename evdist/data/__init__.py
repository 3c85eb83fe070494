"""Where rows and dissimilarities come from: sources, tables, data sets."""
