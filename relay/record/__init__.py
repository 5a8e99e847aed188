"""All that is read and written about a run: what people write, what agents give back, what Relay keeps."""
