"""Push built images to a registry, and make the values by which a profile and the chart name them by digest."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bench.schema import Device
from runner.images.docker import TRANSFER_SECONDS, read_digest, require_built, run_docker
from runner.images.names import CONTROL, DEVICES, LOCAL_REGISTRY, ImageSpec, name_image


@dataclass(frozen=True, kw_only=True)
class PushedImages:
    """References, `REPOSITORY@sha256:...`, of what was pushed."""

    by_framework: Mapping[str, Mapping[Device, str]]
    control: str | None
    """The image of runner and collector; None if it was not pushed."""

    def find_reference(self, image: ImageSpec) -> str | None:
        """Return the reference of a pushed image; None if it was not pushed."""
        if image.flavour is None:
            return self.control
        return self.by_framework.get(image.name, {}).get(DEVICES[image.flavour])

    def make_profile_values(self) -> dict[str, object]:
        """Return the keys for a profile; empty if no framework's image was pushed."""
        return {"images": self.by_framework} if self.by_framework else {}

    def make_chart_values(self) -> dict[str, object]:
        """Return the values for the chart; empty if `control` was not pushed."""
        if self.control is None:
            return {}
        repository, _, digest = self.control.partition("@")
        values: dict[str, object] = {"image": {"repository": repository, "digest": digest}}
        return values | ({"profile": self.make_profile_values()} if self.by_framework else {})


def push_images(registry: str, images: Iterable[ImageSpec], arguments: Mapping[str, str]) -> PushedImages:
    """Push images that were built with these arguments. Raise UserError if one is not built or cannot be pushed."""
    by_framework: dict[str, dict[Device, str]] = {}
    control = None
    for image in images:
        reference = _push_image(registry, image, arguments)
        if image.name == CONTROL or image.flavour is None:
            control = reference
        else:
            by_framework.setdefault(image.name, {})[DEVICES[image.flavour]] = reference
    return PushedImages(by_framework=by_framework, control=control)


def _push_image(registry: str, image: ImageSpec, arguments: Mapping[str, str]) -> str:
    local, remote = (name_image(place, image, arguments) for place in (LOCAL_REGISTRY, registry))
    require_built(local, image.name)
    run_docker("tag", local, remote)
    run_docker("push", "--quiet", remote, limit_seconds=TRANSFER_SECONDS)
    return read_digest(remote)
