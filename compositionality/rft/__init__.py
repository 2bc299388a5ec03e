"""From judged rollouts to rows for supervised fine-tuning: filter, chunks, merges."""
