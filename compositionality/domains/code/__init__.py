"""Programs judged by tests, which run in a sandbox: rows of Guru and of stock data sets, and problems of our own."""
