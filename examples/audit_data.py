"""Check what problem files contain, level by level: prints one table for each file."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("audit_data")
