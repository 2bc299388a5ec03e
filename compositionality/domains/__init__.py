"""Tasks whose rows come from others: mathematics, programs, logic, science, tables, reasoning-gym."""
