"""Pods whose Job is gone."""

from runs import Setup, wait_for


def orphan(setup: Setup) -> str:
    """Delete the run's one Job that has a pod which runs, as `kubectl delete --cascade=orphan` does; return the pod."""
    job = wait_for(lambda: [job for job in setup.list_jobs() if job["status"].get("ready")], "a Job that runs")[0]
    name = job["metadata"]["name"]
    path = f"/apis/batch/v1/namespaces/{setup.profile.namespace}/jobs/{name}"
    setup.connection.request("delete", path, query={"propagationPolicy": "Orphan"})
    wait_for(lambda: name not in {job["metadata"]["name"] for job in setup.list_jobs()}, "the Job to be gone")
    (pod,) = (pod for pod in setup.list_pods() if pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] == name)
    return str(pod["metadata"]["name"])
