"""Who starts the nights: what the machine itself runs, written for it exactly, and whether it came when it was due."""
