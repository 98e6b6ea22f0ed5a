"""Reads whole tensors with a Python package.

Usage: read_parameters.py h5py|safetensors FILE
Prints {name: {"shape": [...], "values": [...]}}. Exits with 77 where the package is not installed.
"""
import json
import sys

package, path = sys.argv[1:]
try:
    if package == "h5py":
        import h5py
    else:
        from safetensors.numpy import load_file
except ImportError:
    sys.exit(77)

tensors = {}
if package == "h5py":
    with h5py.File(path, "r") as file:
        for name, dataset in file.items():
            tensors[name] = dataset[...]
else:
    tensors = load_file(path)
print(json.dumps({name: {"shape": list(t.shape), "values": t.ravel().tolist()} for name, t in tensors.items()}))
