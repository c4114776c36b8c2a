"""Operators of ONNX, one file for each family."""
