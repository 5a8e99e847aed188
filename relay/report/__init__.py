"""What is told of runs and of this machine: read from the ledger and from git, written as lines for people."""
