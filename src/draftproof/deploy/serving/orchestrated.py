"""Forms for Kubernetes: a Deployment, values for vLLM's production stack, a LeaderWorkerSet, a Dynamo graph.

Source: the Kubernetes API apps/v1; vllm-project/production-stack helm/values.yaml;
leaderworkerset.x-k8s.io/v1; nvidia.com/v1alpha1 DynamoGraphDeployment. No cluster was asked.
"""

import re
from collections.abc import Sequence

from draftproof.config.raw import JsonValue
from draftproof.deploy.serving.form import Form, Text, no_form
from draftproof.deploy.serving.quoting import kubernetes_text, yaml_text
from draftproof.deploy.serving.reason import Said
from draftproof.deploy.serving.rendering import Option, Rendering
from draftproof.deploy.serving.single import model_paths

__all__ = ["ORCHESTRATED"]

_LEADER, _INDEX = "$(LWS_LEADER_ADDRESS)", "$(LWS_WORKER_INDEX)"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_LISTENS_EVERYWHERE = "0.0.0.0"  # noqa: S104 (inside a pod; who reaches it is the Service's business)
_GPU = "nvidia.com/gpu"


def _deployment(made: Rendering) -> list[Text]:
    if made.nodes > 1:
        raise no_form("kubernetes", "a Deployment has one pod a replica; take lws or dynamo")
    name = _dns_name(made, "kubernetes")
    labels: JsonValue = {"app": name}
    deployment: dict[str, JsonValue] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _pod(made, _pod_argv(made), serves=True)},
        },
    }
    return [Text("kubernetes.yaml", f"{yaml_text(deployment)}---\n{yaml_text(_service(made, name))}")]


def _service(made: Rendering, name: str) -> dict[str, JsonValue]:
    port = made.plan.number("port")
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": port, "targetPort": port}]},
    }


def _helm(made: Rendering) -> list[Text]:
    """Values of the production stack, whose chart writes model, host and port itself."""
    if made.engine.name != "vllm" or made.nodes > 1:
        raise no_form("helm", "the production stack serves vLLM, one pod a replica")
    image = str(made.image.value)
    repository, _, tag = image.rpartition(":")
    arguments: list[JsonValue] = [
        kubernetes_text(element)
        for option in made.options
        if option.flag not in ("--host", "--port")
        for element in option.argv
    ]
    spec: dict[str, JsonValue] = {
        "name": _dns_name(made, "helm"),
        "repository": repository or image,
        "tag": tag if repository else "latest",
        "modelURL": made.plan.text("target"),
        "replicaCount": 1,
        "requestGPU": made.devices_per_node,
        "vllmConfig": {"extraArgs": arguments},
    }
    if made.env:
        spec["env"] = _env(made)
    return [Text("values.yaml", yaml_text({"servingEngineSpec": {"modelSpec": [spec]}}))]


def _lws(made: Rendering) -> list[Text]:
    cluster = made.cluster
    if cluster is None or made.nodes == 1:
        raise no_form("lws", "a LeaderWorkerSet is for several nodes of an engine that spreads by itself")
    name = _dns_name(made, "lws")
    leader = _pod(made, _pod_argv(made, cluster.options(made.nodes, 0, _LEADER)), serves=True)
    worker = _pod(made, _pod_argv(made, cluster.options(made.nodes, _INDEX, _LEADER)), serves=False)
    document: dict[str, JsonValue] = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "leaderWorkerTemplate": {
                "size": made.nodes,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": {"metadata": {"labels": {"app": name}}, "spec": leader},
                "workerTemplate": {"spec": worker},
            },
        },
    }
    return [Text("lws.yaml", f"{yaml_text(document)}---\n{yaml_text(_service(made, name))}")]


def _dynamo(made: Rendering) -> list[Text]:
    """A graph of a frontend and one kind of worker; host and port are the frontend's."""
    if made.engine.name not in ("vllm", "sglang"):
        raise no_form("dynamo", "rendered for its vLLM and SGLang workers only")
    if not made.plan.text("image"):
        raise no_form("dynamo", "an engine's own image holds no Dynamo; name one with image")
    kept = [option for option in made.options if option.flag not in ("--host", "--port")]
    words = [*made.model.argv, *(element for option in kept for element in option.argv)]
    container: dict[str, JsonValue] = {
        "image": str(made.image.value),
        "command": ["python3", "-m", f"dynamo.{made.engine.name}"],
        "args": [kubernetes_text(word) for word in words],
    }
    worker: dict[str, JsonValue] = {
        "componentType": "worker",
        "replicas": 1,
        "extraPodSpec": {"mainContainer": container},
    }
    if made.plan.text("device") == "cuda":
        worker["resources"] = {"limits": {"gpu": str(made.devices_per_node)}}
    if made.nodes > 1:
        worker["multinode"] = {"nodeCount": made.nodes}
    if made.env:
        worker["envs"] = _env(made)
    document: dict[str, JsonValue] = {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": _dns_name(made, "dynamo")},
        "spec": {
            "services": {
                "Frontend": {"componentType": "frontend", "replicas": 1},
                "DecodeWorker": worker,
            }
        },
    }
    return [Text("dynamo.yaml", yaml_text(document))]


def _pod(made: Rendering, argv: Sequence[str], *, serves: bool) -> dict[str, JsonValue]:
    words: list[JsonValue] = [*argv]
    number = len(made.program)
    container: dict[str, JsonValue] = {
        "name": "engine",
        "image": str(made.image.value),
        "command": words[:number],
        "args": words[number:],
    }
    if made.env:
        container["env"] = _env(made)
    if made.plan.text("device") == "cuda":
        container["resources"] = {"limits": {_GPU: made.devices_per_node}}
    if serves:
        port = made.plan.number("port")
        container["ports"] = [{"containerPort": port}]
        probe: dict[str, JsonValue] = {"path": "/health", "port": port}
        container["readinessProbe"] = {"httpGet": probe, "periodSeconds": 5}
        container["startupProbe"] = {"httpGet": probe, "periodSeconds": 10, "failureThreshold": 180}
    paths = model_paths(made)
    mounts: list[JsonValue] = [
        {"name": f"model-{number}", "mountPath": path, "readOnly": True} for number, path in enumerate(paths)
    ]
    volumes: list[JsonValue] = [
        {"name": f"model-{number}", "hostPath": {"path": path}} for number, path in enumerate(paths)
    ]
    shared: dict[str, JsonValue] = {"name": "shm", "emptyDir": {"medium": "Memory"}}
    container["volumeMounts"] = [*mounts, {"name": "shm", "mountPath": "/dev/shm"}]  # noqa: S108
    return {"containers": [container], "volumes": [*volumes, shared]}


def _pod_argv(made: Rendering, extra: tuple[Option, ...] = ()) -> list[str]:
    """The command line inside a pod, where the Service must reach the port; its own variables stay."""
    said = Said(_LISTENS_EVERYWHERE, "a pod is reached from outside", "kubernetes")
    options = [Option("--host", said) if option.flag == "--host" else option for option in made.options]
    model = made.model.argv[1:] if made.model_is_positional else made.model.argv
    words = [*made.program, *model, *(word for option in options for word in option.argv)]
    return [*map(kubernetes_text, words), *(word for option in extra for word in option.argv)]


def _env(made: Rendering) -> list[JsonValue]:
    return [{"name": key, "value": kubernetes_text(str(said.value))} for key, said in made.env.items()]


def _dns_name(made: Rendering, form: str) -> str:
    name = made.plan.text("name")
    if not _NAME.fullmatch(name):
        raise no_form(form, f"{name!r} is no name of a Kubernetes object")
    return name


ORCHESTRATED = (
    Form("kubernetes", "a Deployment and its Service", _deployment),
    Form("helm", "values for vLLM's production stack", _helm),
    Form("lws", "a LeaderWorkerSet over several nodes", _lws),
    Form("dynamo", "a DynamoGraphDeployment", _dynamo),
)
