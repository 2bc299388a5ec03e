# The paper: Llama-3.1-8B-Instruct on nodes of GPUs, its problems, its sizes. Sourced by bash/lib.sh.
BASE_MODEL=models/meta-llama/Llama-3.1-8B-Instruct
ENGINE=ray                               # vLLM on every GPU of the cluster
HARDWARE=gpu
