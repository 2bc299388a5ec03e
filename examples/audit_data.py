"""Say what problem files really hold, level by level: one table for each file, by its task."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("audit_data")
