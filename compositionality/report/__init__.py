"""Results as a reader sees them: figures and records."""
