"""Where runs are computed: processes of this machine, Ray, Slurm."""
