"""Cliff walking: SARSA against Q-learning."""
