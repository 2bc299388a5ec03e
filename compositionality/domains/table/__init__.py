"""Questions about a table: rows of others (HiTab, MultiHiertt) and problems of our own."""
