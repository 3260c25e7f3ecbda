"""Closed formulas of queueing theory, for tests of the simulation of access. Times are in one unit throughout."""

from math import factorial


def mm_c_wait(arrival_rate: float, service_time: float, num_servers: int) -> float:
    """Return the mean time in the queue of M/M/c, by Erlang's C formula.

    L. Kleinrock, Queueing Systems, volume 1, 1975, section 3.5.
    """
    offered = arrival_rate * service_time
    load = offered / num_servers
    last = offered**num_servers / factorial(num_servers) / (1 - load)
    waiting_share = last / (sum(offered**k / factorial(k) for k in range(num_servers)) + last)
    return waiting_share * service_time / (num_servers * (1 - load))


def mg_1_wait(arrival_rate: float, service_time: float, squared_cv: float) -> float:
    """Return the mean time in the queue of M/G/1, first come first served, by Pollaczek and Khinchine's formula."""
    load = arrival_rate * service_time
    return load * service_time * (1 + squared_cv) / (2 * (1 - load))


def mg_1_ps_turnaround(arrival_rate: float, service_time: float) -> float:
    """Return the mean time from arrival to end of M/G/1 with processor sharing: it does not depend on the spread.

    L. Kleinrock, Queueing Systems, volume 2, 1976, section 4.4. The same holds for the mean of jobs of any one length,
    so the mean slowdown is 1 / (1 - load).
    """
    return service_time / (1 - arrival_rate * service_time)


def machine_repair_throughput(num_users: int, think_time: float, service_time: float) -> float:
    """Return the jobs that end in a unit of time where users think, submit one job to one server and wait for its end.

    All times exponential: M/M/1 with a finite population (D. Gross and others, Fundamentals of Queueing Theory, 4th
    edition, 2008, section 2.7).
    """
    ratio = service_time / think_time
    weights = [factorial(num_users) / factorial(num_users - k) * ratio**k for k in range(num_users + 1)]
    return (1 - weights[0] / sum(weights)) / service_time
