"""TorchScript modules, read by their graph."""
