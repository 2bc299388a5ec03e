"""Studies as data, and the runner that schedules the scripts of ``bash/``."""
