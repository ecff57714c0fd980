"""Model weights from the hub to an object store and on to nodes: verified, resumable, without a staging disk.

A program of its own: it imports nothing of the project around it, and runs from this directory or from a zip file
(`python -m staging`). README.md is its contract.
"""

VERSION = "1.0.0"
"""Written into manifests. Change it with the manifest's meaning, not with every edit."""
