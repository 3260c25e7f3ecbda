"""Probes that read the state of the machine from /proc, the cgroup and NVML."""
