"""The built-in sampler: a decoder, its key-value cache and continuous batching, on CPU or GPU."""
