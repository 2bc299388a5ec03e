"""One interface for all engines that sample completions: in-process, vLLM, Ray, an OpenAI-compatible server."""
