"""The tests of Relay; a package, so that `tests.world` is this one whatever else is installed."""
