"""Calibration: from a device's own frames to INT8 engines that have earned their place, or a refusal with reasons."""
