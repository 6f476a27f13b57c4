# A service of one run: docker build -t gpn-serve . && docker run -v RUN:/run/model ... (docs/service.md)
FROM python:3.11-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY gpn_scale ./gpn_scale
COPY precompute ./precompute
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim
COPY constraints.txt /tmp/constraints.txt
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu \
        -c /tmp/constraints.txt "gpn-scale[serve] @ file://$(ls /wheels/gpn_scale-*.whl)" \
    && rm -rf /wheels /tmp/constraints.txt
RUN useradd --create-home --uid 10001 service
USER 10001
WORKDIR /home/service
ENV OMP_NUM_THREADS=1 GPN_SCALE_LOG_FORMAT=json
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=300s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["gpn-serve"]
CMD ["--run", "/run/model", "--host", "0.0.0.0", "--port", "8000", "--token-file", "/run/secrets/token"]
