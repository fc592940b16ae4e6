"""What one execution needs: a validated launch plan, and memory with guards and poison."""
