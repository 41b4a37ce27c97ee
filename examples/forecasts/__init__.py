"""Forecasts: DLinear on ETTh1, sunspots and air passengers with intervals, k steps ahead as in D2L, kernel regression along time."""
