"""The execution engines: local processes, Ray, Slurm."""
