"""What measured cells cost in money, energy and carbon, and which machine is the cheapest or the fastest for a job."""
