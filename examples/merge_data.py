"""Join data sets: problem files, SFT files, or folders of train.parquet and test.parquet."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("merge_data")
