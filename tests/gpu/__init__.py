"""Tests on a real GPU with TensorRT and pycuda; skipped elsewhere. `python benchmarks/gpu.py OUT` runs them too.

EDGE_AGENT_GPU_PLANS keeps plans between runs, EDGE_AGENT_GPU_TACTICS limits tactic sources (A,B), EDGE_AGENT_GPU_FRAMES
is a folder of JPEG frames for the parity tests; model files are looked for in engines/.
"""
