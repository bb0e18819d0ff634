"""Fixtures of a made-up device."""

from fake_device import clock, fake

__all__ = ["clock", "fake"]
