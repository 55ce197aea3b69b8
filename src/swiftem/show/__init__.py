"""Tables, numbers and axes: how results are shown."""
