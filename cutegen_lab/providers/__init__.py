"""Sources of candidates: templates, a model behind an OpenAI-compatible endpoint, a person, a recording."""
