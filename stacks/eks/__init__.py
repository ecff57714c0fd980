"""The parts of the EKS environment's story that are plain values."""
