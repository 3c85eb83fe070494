"""Jobs: configuration, stages, client, command line, monitoring."""
