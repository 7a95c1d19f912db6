"""Worker processes, which run the forecasters of the sensors."""
