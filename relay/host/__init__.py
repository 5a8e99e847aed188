"""The outside world, one file per outside thing: git, processes, files, the clock, the terminal."""
