"""Programs that run inside pods, in images that have nothing but Python: each file stands alone."""
