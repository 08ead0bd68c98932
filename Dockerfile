# docker build -t unet_tf2 . && docker run --gpus all -it --rm --ipc=host -v "$PWD/data:/data" -v "$PWD/results:/results" unet_tf2
FROM nvcr.io/nvidia/tensorflow:25.02-tf2-py3

ENV TF_USE_LEGACY_KERAS=0
WORKDIR /workspace/unet
COPY requirements.txt .
RUN pip install --no-cache-dir -r requirements.txt
RUN python -c "import dllogger" || pip install --no-cache-dir git+https://github.com/NVIDIA/dllogger
COPY . .
RUN mkdir -p /data /results
