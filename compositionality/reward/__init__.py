"""From a response to a verdict to a reward; the pool of judges; the function that verl calls."""
