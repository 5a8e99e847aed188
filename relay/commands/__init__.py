"""One verb a file: read the arguments, call one thing below, let the terminal say it."""
