"""One interface for all that can sample completions: in-process engines, vLLM, Ray, an OpenAI-compatible server."""
