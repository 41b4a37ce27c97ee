"""Adapters: small trained parts beside frozen layers."""
