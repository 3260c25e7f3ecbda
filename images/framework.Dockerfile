# One framework and the package `bench`: measures one cell. `benchmatrix images build` passes the arguments; by hand:
#   docker build -f images/framework.Dockerfile --build-arg FRAMEWORK=jax --build-arg FLAVOUR=cpu .
# FRAMEWORK: pytorch, tensorflow or jax; what is installed is locked in images/FRAMEWORK/requirements-FLAVOUR.txt.
# FLAVOUR: cpu or cuda (docs/images.md says which driver the node needs).
# BASE: any Python 3.11 on Debian 12, by tag or digest.
# CPU_INDEX: PyTorch's own index of builds without CUDA, https://download.pytorch.org/whl/cpu, where it can be reached: 4 GB less.
ARG BASE=python:3.11-slim-bookworm
ARG FLAVOUR=cpu

FROM ${BASE} AS framework
ARG FRAMEWORK
ARG FLAVOUR=cpu
ARG CPU_INDEX=
COPY images/bench/requirements-build.txt images/${FRAMEWORK}/requirements-${FLAVOUR}.txt images/install_requirements.sh /build/
RUN python -m venv /build/tools && /build/tools/bin/pip install --no-cache-dir --require-hashes -r /build/requirements-build.txt
RUN python -m venv /opt/bench && sh /build/install_requirements.sh /opt/bench /build/requirements-${FLAVOUR}.txt "${CPU_INDEX}" \
    && /opt/bench/bin/pip uninstall -q -y pip $(grep -q '^setuptools==' /build/requirements-${FLAVOUR}.txt || echo setuptools) \
    && find /opt/bench -name '*.a' -delete

# A layer of its own: a registry and the nodes that have the frameworks take only this one when the package changes.
FROM framework AS package
COPY images/bench /build/bench
RUN /build/tools/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /build/wheels /build/bench \
    && /build/tools/bin/pip install --no-cache-dir --no-deps --no-index --target /build/package /build/wheels/*.whl

FROM ${BASE} AS base-cpu
ENV PATH=/opt/bench/bin:$PATH

# The driver comes from the node. NVIDIA's container toolkit mounts it where the loader looks, as far as these capabilities
# say: CUDA, and NVML (https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/1.11.0/user-guide.html). GKE mounts
# it at /usr/local/nvidia and runs no ldconfig (https://github.com/keras-team/kinetic/issues/269): the loader has to be told.
# That folder holds the driver alone, so it hides none of the CUDA libraries in /opt/bench. NVIDIA_VISIBLE_DEVICES is left to
# the node's device plugin: set here, it would show every GPU of a node to pods that have asked for none.
FROM base-cpu AS base-cuda
ENV PATH=$PATH:/usr/local/nvidia/bin LD_LIBRARY_PATH=/usr/local/nvidia/lib64 NVIDIA_DRIVER_CAPABILITIES=compute,utility

FROM base-${FLAVOUR}
ARG FRAMEWORK
ARG FLAVOUR
# torch.compile makes a CPU's kernels with g++, and the launchers of GPU kernels with gcc (decision 0017: why not TinyCC);
# both include Python.h, which Debian's own Python lacks. XLA, in TensorFlow and JAX, has its compiler in it.
RUN set -eu; case "${FRAMEWORK}-${FLAVOUR}" in \
        pytorch-cpu) packages=g++ ;; \
        pytorch-cuda) packages="gcc libc6-dev" ;; \
        *) exit 0 ;; \
    esac; \
    headers=$(python -c 'import sysconfig; print(sysconfig.get_path("include"))'); \
    [ -f "$headers/Python.h" ] || packages="$packages libpython3-dev"; \
    apt-get -q update; apt-get -q install -y --no-install-recommends $packages; \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log
COPY --from=framework /opt/bench /opt/bench
COPY --from=package /build/package /opt/bench/lib/python3.11/site-packages
ARG REVISION=unknown
LABEL org.opencontainers.image.title="benchmatrix ${FRAMEWORK}" \
      org.opencontainers.image.description="Measures one cell of a benchmark matrix in ${FRAMEWORK}" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision="${REVISION}"
ENV PYTHONUNBUFFERED=1 PYTHONSAFEPATH=1 HOME=/tmp
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["python", "-m", "bench"]
