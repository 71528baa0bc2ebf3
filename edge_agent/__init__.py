"""edge_agent: reads labels from cameras on a device and publishes what they say."""

__version__ = "0.1.0"
