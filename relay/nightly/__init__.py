"""A night: what waits goes on, then the queue is taken, one run at a time, within a purse; one record, one notice."""
