"""Networks over trees: a label at every node, at the root, or vectors of sentences."""
