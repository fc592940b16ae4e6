"""A model behind an OpenAI-compatible endpoint: the Responses API or Chat Completions."""
