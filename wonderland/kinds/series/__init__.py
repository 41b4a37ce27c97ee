"""Series: forecasts of one or many series over time."""
