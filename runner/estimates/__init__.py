"""What a run will take before it is measured: node-hours and money."""
