#!/usr/bin/env bash
# GRPO on Countdown with the single-file trainer (compositionality/train/grpo.py) under torchrun. Without MODEL_PATH: a model of
# 0.2 M parameters, pretrained here, with prompts in its own short style, on two CPU cores. With MODEL_PATH (a folder or a Hub id),
# on GPUs: prompts in R1-zero style, which end in <think>, without a chat template. README.md: times, results, variants, SGLang.
# Reads TRAIN_FILES and VAL_FILES (default: problems made here; with MODEL_PATH parquet or .jsonl with columns nums, target).
# Writes OUTPUT: final/ and best/ (models), metrics.jsonl, samples/step_N.txt. Stopped, it continues when run again.
# Usage: [MODEL_PATH=Qwen/Qwen2.5-3B] [N_GPUS=8] bash bash/single_file/countdown.sh [key=value …]
case " $* " in *" --help "* | *" -h "*) sed -En '2,/^[^#]/s/^#( |$)//p' "$0" && exit ;; esac
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
fail() { echo "error: $*" >&2 && exit 2; }

PYTHON=${PYTHON:-.venv/bin/python}
if [[ -z $(command -v "$PYTHON") ]]; then PYTHON=python; fi
DATA=${DATA_DIR:-data/single_file}
CKPT=${CKPT_DIR:-checkpoints/single_file}
ENTROPY=0.001 # coefficient of the bonus: base models lose their entropy, and then the length of their answers
dry=(${DRY_RUN:+--dry-run})
create=("$PYTHON" examples/create_problems.py task=countdown "${dry[@]}")

if [[ -z ${MODEL_PATH:-} ]]; then # two CPU cores
  PROCESSES=2 PROMPTS=64 COMPLETIONS=16 TOKENS=48 STEPS=60 LR=3e-4 SAMPLES_EVERY=10
  OUTPUT=${OUTPUT:-$CKPT/tiny}
  TRAIN_FILES=$DATA/tiny/train.parquet VAL_FILES=$DATA/tiny/validation.parquet
  small=(style=compact "levels=[3]" "numbers=[1,20]" "target=[1,20]")
  export OMP_NUM_THREADS=1
  "$PYTHON" examples/pretrain_tiny.py profile=tiny/single step=section43/stage0_pretrain output="$CKPT/base" steps=2500 \
    mix.countdown=1.0 run.processes=2 "${dry[@]}"
  "${create[@]}" "${small[@]}" split=train count=800 output="$TRAIN_FILES"
  "${create[@]}" "${small[@]}" split=validation count=200 output="$VAL_FILES"
  keys=(model.path="$CKPT/base" run.device=cpu mesh.shard=false optim.beta2=0.98 trainer.micro_batch_tokens=4096
    data.max_prompt_tokens=64)
else # all visible GPUs, or N_GPUS; tensor parallelism over TENSOR of them
  PROCESSES=${N_GPUS:-$("$PYTHON" -c "import torch; print(torch.cuda.device_count())")}
  [[ $PROCESSES != 0 ]] || fail "MODEL_PATH=$MODEL_PATH: no GPU is visible; leave MODEL_PATH out, or give N_GPUS with DRY_RUN=1"
  PROMPTS=64 COMPLETIONS=8 TOKENS=1024 STEPS=300 LR=1e-6 SAMPLES_EVERY=10
  OUTPUT=${OUTPUT:-$CKPT/$(basename "${MODEL_PATH%/final}")}
  if [[ -z ${TRAIN_FILES:-} ]]; then
    TRAIN_FILES=$DATA/train.jsonl VAL_FILES=$DATA/validation.jsonl
    "${create[@]}" "levels=[3,4]" split=train count=20000 output="$DATA/train.parquet"
    "${create[@]}" "levels=[3,4]" split=validation count=256 output="$DATA/validation.parquet"
    [[ -n ${DRY_RUN:-} ]] || "$PYTHON" -c 'import json, sys, pandas
for name in sys.argv[1:]:
    truths = [json.loads(row["ground_truth"]) for row in pandas.read_parquet(name).reward_model]
    rows = pandas.DataFrame({"nums": row["numbers"], "target": row["target"], "level": len(row["numbers"])} for row in truths)
    rows.to_json(name.replace(".parquet", ".jsonl"), orient="records", lines=True)' "$DATA"/{train,validation}.parquet
  fi
  keys=(model.path="$MODEL_PATH" model.dtype=bfloat16 model.activation_checkpointing=true mesh.tensor="${TENSOR:-2}"
    rollout.engine=vllm data.source=countdown "data.truth_key=[target,nums]" data.apply_chat_template=false
    data.prompt_template=compositionality/train/prompt_templates/r1_zero_countdown.txt)
fi

start=("$PYTHON" -m torch.distributed.run --standalone --nproc_per_node="$PROCESSES")
if [[ -n ${DRY_RUN:-} ]]; then start=("$PYTHON") keys+=(run.processes="$PROCESSES"); fi
"${start[@]}" compositionality/train/grpo.py "${keys[@]}" "data.train_files=$TRAIN_FILES" "data.val_files=${VAL_FILES:-}" \
  data.prompts_per_step="$PROMPTS" rollout.n="$COMPLETIONS" rollout.max_tokens="$TOKENS" algorithm.entropy_coef="$ENTROPY" \
  optim.lr="$LR" trainer.steps="$STEPS" trainer.eval_every=20 trainer.save_every=20 trainer.samples_every="$SAMPLES_EVERY" \
  trainer.output="$OUTPUT" "${dry[@]}" "$@"
if [[ -n ${DRY_RUN:-} ]]; then exit; fi
last=$(printf '%s\n' "$OUTPUT"/samples/* | sort -V | tail -1) && echo "$last begins with:" && head -30 "$last"
