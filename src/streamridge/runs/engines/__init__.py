"""Engines that carry replays out: in this process, in local processes, on Dask."""
