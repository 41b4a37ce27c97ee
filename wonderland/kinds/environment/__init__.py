"""Environments: a policy from episodes."""
