"""Units. Memory is counted in powers of two (GiB), rates and files in powers of ten (GB/s, TB), as the sources do."""

MIB = 2**20
GIB = 2**30
MB = 10**6
GB = 10**9
