"""What can be read of the machine: /proc, the cgroup and NVML in, plain numbers and an Environment out."""
