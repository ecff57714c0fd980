"""Weights: hub → bucket → node. The program that copies and verifies is in staging/; the modules here run it in a cluster."""
