"""Text in, batches of token ids out: readers, tokenisers, vocabulary, padding, buckets, streams."""
