# ldl with PyTorch for the CPU: docker build -t ldl . && docker run --rm -v "$PWD":/work ldl -c nodules
FROM python:3.12-slim
COPY . /ldl
RUN pip install --no-cache-dir torch torchvision --index-url https://download.pytorch.org/whl/cpu \
    && pip install --no-cache-dir /ldl
# Any user may write caches.
ENV HOME=/tmp
WORKDIR /work
ENTRYPOINT ["ldl"]
CMD ["--help"]
