"""ONNX files as modules of torch: their operators become operators of torch, one submodule for each node."""
