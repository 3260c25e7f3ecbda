"""List what this tool reads of each kind of object of an API server, and of which type each value is.

Every answer is held against the shape of its kind before anything reads it (runner.kubernetes.answers): a proxy, a
broken extension or another program may have written it. Whoever reads another field adds it here; a test changes every
value of recorded answers, and finds what is read and not named. The fields are those of the API reference,
https://kubernetes.io/docs/reference/kubernetes-api/; Kueue's and Karpenter's are cited where they are read.
"""

from collections.abc import Mapping

from runner.kubernetes.shapes import (
    ANYTHING,
    BASE64,
    FLAG,
    QUANTITY,
    TEXT,
    TIME,
    WHOLE,
    Fields,
    FindMisfit,
    Leaf,
    ListOf,
    MapOf,
    Shape,
    compile_shape,
)

TEXTS = ListOf(TEXT)
METADATA: Fields = {
    "name": TEXT,
    "uid": TEXT,
    "labels": MapOf(TEXT),
    "annotations": MapOf(TEXT),
    "creationTimestamp": TIME,
    "deletionTimestamp": TIME,
    "finalizers": TEXTS,
    "ownerReferences": ListOf({"kind!": TEXT}),
    "resourceVersion": TEXT,
    "continue": TEXT,
}
NAMED: Fields = {"metadata!": {**METADATA, "name!": TEXT}}
CONDITIONS = ListOf({"type!": TEXT, "status!": TEXT, "reason": TEXT, "message": TEXT, "lastTransitionTime": TIME})
RULES = ListOf({"key!": TEXT, "operator!": TEXT, "values": TEXTS})
SELECTOR: Shape = {
    "nodeSelectorTerms": ListOf(
        {"matchExpressions": RULES, "matchFields": ListOf({"key!": TEXT, "values!": ListOf(TEXT, min_items=1)})}
    )
}
POD_SPEC: Shape = {
    "containers": ListOf(
        {
            "name!": TEXT,
            "image": TEXT,
            "env": ListOf({"name!": TEXT, "value": TEXT}),
            "resources": {"requests": MapOf(QUANTITY)},
        }
    ),
    "initContainers": ListOf({"name!": TEXT, "restartPolicy": TEXT}),
    "nodeName": TEXT,
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": SELECTOR}},
}
CONTAINER_STATUSES = ListOf(
    {
        "name!": TEXT,
        "imageID": TEXT,
        "state": {
            "waiting": {"reason": TEXT, "message": TEXT},
            "running": {},
            "terminated": {
                **{"exitCode": WHOLE, "signal": WHOLE, "reason": TEXT, "message": TEXT},
                **{"startedAt": TIME, "finishedAt": TIME},
            },
        },
    }
)
TAINTS = ListOf({"key!": TEXT, "effect!": TEXT, "value": TEXT})
JOB: Shape = {
    **NAMED,
    "spec!": {"suspend": FLAG, "template": {"spec": POD_SPEC}},
    "status": {
        **dict.fromkeys(("active", "ready", "terminating", "failed"), WHOLE),
        "completionTime": TIME,
        "conditions": CONDITIONS,
    },
}
POD: Shape = {
    **NAMED,
    "spec!": POD_SPEC,
    "status": {
        **dict.fromkeys(("phase", "reason", "message", "qosClass"), TEXT),
        "startTime": TIME,
        "conditions": CONDITIONS,
        "containerStatuses": CONTAINER_STATUSES,
        "initContainerStatuses": CONTAINER_STATUSES,
    },
}
NODE: Shape = {
    **NAMED,
    "spec": {"taints": TAINTS, "unschedulable": FLAG},
    "status": {
        "capacity": MapOf(QUANTITY),
        "allocatable": MapOf(QUANTITY),
        "conditions": CONDITIONS,
        "nodeInfo": dict.fromkeys(("kubeletVersion", "containerRuntimeVersion", "osImage"), TEXT),
        "images": ListOf({"names": TEXTS}),
    },
}
EVENT: Shape = {
    "involvedObject!": {"uid": TEXT, "name": TEXT},
    **dict.fromkeys(("type", "reason", "message", "lastTimestamp", "eventTime"), TEXT),
    "series": {"lastObservedTime": TEXT},
}
LOCAL_QUEUE: Shape = {
    **NAMED,
    "spec!": {"clusterQueue!": TEXT, "stopPolicy": TEXT},
    "status": {"conditions": CONDITIONS, "pendingWorkloads": WHOLE, "admittedWorkloads": WHOLE},
}
FLAVOR_QUOTAS: Shape = {
    "name!": TEXT,
    "resources!": ListOf({"name!": TEXT, "nominalQuota!": QUANTITY, "borrowingLimit": QUANTITY}),
}
CLUSTER_QUEUE: Shape = {
    **NAMED,
    "spec!": {
        "resourceGroups": ListOf({"coveredResources!": TEXTS, "flavors!": ListOf(FLAVOR_QUOTAS, min_items=1)}),
        **dict.fromkeys(("cohort", "cohortName", "stopPolicy"), TEXT),
        "namespaceSelector": {"matchLabels": MapOf(TEXT)},
    },
    "status": {"conditions": CONDITIONS},
}
RESOURCE_FLAVOR: Shape = {
    "metadata!": METADATA,
    "spec": {
        "nodeLabels": MapOf(TEXT),
        "nodeTaints": TAINTS,
        "tolerations": ListOf(dict.fromkeys(("key", "operator", "value", "effect"), TEXT)),
    },
}
WORKLOAD: Shape = {
    "metadata!": {**METADATA, "name!": TEXT, "labels!": MapOf(TEXT)},
    "spec!": {"active": FLAG},
    "status": {
        "conditions": CONDITIONS,
        "admissionChecks": ListOf({"name!": TEXT, "state": TEXT, "message": TEXT}),
    },
}
NODE_POOL: Shape = {
    **NAMED,
    "spec!": {
        "template!": {"metadata": {"labels": MapOf(TEXT)}, "spec!": {"taints": TAINTS, "requirements": RULES}},
        "limits": MapOf(QUANTITY),
    },
    "status": {"conditions": ListOf({"type": TEXT, "status": TEXT, "message": TEXT})},
}
NUMBER = Leaf("a number such as 36 or 36+", lambda value: isinstance(value, str) and value[:1].isdecimal())
_SHAPES: Mapping[str, Shape] = {
    "jobs": JOB,
    "pods": POD,
    "nodes": NODE,
    "events": EVENT,
    "namespaces": {"metadata!": METADATA, "status": {"phase": TEXT}},
    "secrets": {"data": MapOf(BASE64)},
    "deployments": {"metadata!": METADATA, "status": {"availableReplicas": WHOLE}},
    **dict.fromkeys(("roles", "rolebindings", "services", "resourceclaimtemplates"), {"metadata!": METADATA}),
    "localqueues": LOCAL_QUEUE,
    "clusterqueues": CLUSTER_QUEUE,
    "resourceflavors": RESOURCE_FLAVOR,
    "workloads": WORKLOAD,
    "nodepools": NODE_POOL,
    "resourceslices": {"spec!": {"devices": ListOf({})}},
    "kueue.x-k8s.io": {"versions!": ListOf({"version!": TEXT}), "preferredVersion": {"groupVersion!": TEXT}},
    "version": {"gitVersion!": TEXT, "major!": NUMBER, "minor!": NUMBER},
    "selfsubjectaccessreviews": {"status!": {"allowed": FLAG}},
    "selfsubjectreviews": {"metadata!": METADATA, "status!": {"userInfo!": {"username!": TEXT}}},
}
"""By the kind in the path of a request (runner.kubernetes.connection.name_kind). Of other kinds nothing is read."""
FINDERS: Mapping[str, FindMisfit] = {kind: compile_shape(shape) for kind, shape in _SHAPES.items()}
"""What finds where an object is not of the shape of its kind, by the kind."""
find_misfit_of_list = compile_shape(
    {"metadata!": {"continue": TEXT, "resourceVersion": TEXT}, "items": ListOf(ANYTHING)}
)
find_misfit_of_event = compile_shape({"type!": TEXT, "object!": {}})
"""Of an event of a watch; an object in it, but of errors, is one with a version."""
find_misfit_of_version = compile_shape({"metadata!": {"resourceVersion!": TEXT}})
