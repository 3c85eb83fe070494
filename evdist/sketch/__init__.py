"""What a figure shows before any library draws it: places, hulls, colours, counts of pairs."""
