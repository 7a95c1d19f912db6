"""The sensors' forecasters, in worker processes: each a function of its sensor's log."""
