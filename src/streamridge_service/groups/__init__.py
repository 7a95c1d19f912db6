"""Groups of sensors whose forecasts correct each other."""
