"""Validates documents against a JSON Schema with the jsonschema package.

Usage: schema_check.py FILE, where FILE holds {"schema": ..., "documents": [...]}.
Prints one character per document, 1 when it is valid and 0 when it is not.
Exits with 77 where the package is not installed.
"""
import json
import sys

try:
    from jsonschema import Draft202012Validator
except ImportError:
    sys.exit(77)

with open(sys.argv[1], encoding="utf-8") as file:
    content = json.load(file)
Draft202012Validator.check_schema(content["schema"])
validator = Draft202012Validator(content["schema"])
print("".join("1" if validator.is_valid(d) else "0" for d in content["documents"]))
