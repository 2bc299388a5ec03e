# The paper: Llama-3.1-8B-Instruct, its own problems, its sizes, nodes of GPUs, through verl. Sourced by bash/lib.sh.
DEVICE=gpu
DEFAULT_ENGINE=verl
ENGINE=${ENGINE:-$DEFAULT_ENGINE}
ROLLOUT_ENGINE=${ROLLOUT_ENGINE:-ray}     # vLLM on every GPU of the cluster
BASE_MODEL=${BASE_MODEL:-models/meta-llama/Llama-3.1-8B-Instruct}
ARMS=${ARMS:-rl-level1 rl-level2 rl-level1to2 rft}

# Problems: the original's sequence, flaws included, English prompts.
MODE=paper
STRING_OPTIONS=()
PROBLEM_FILES=(string_task/stage2_level1/train string_task/stage2_level2/train string_task/stage2_level1to8/test)
LEVEL1TO2=string_task/stage2_level1/train,string_task/stage2_level2/train   # as the original mixes them: 50,000 each
VALIDATION_FILES=(string_task/stage2_level1to8/test)
TEST_FILES=(string_task/stage2_level1to8/test)
MAX_PROMPT=1024                           # tokens
MAX_RESPONSE=8192

# Stage 1: 10 answers to each of 50,000 problems; prompts that are always solved are dropped.
STAGE1_SAMPLES=10
MAX_CORRECT_RATIO=1.0
SFT_VERL=(data.max_length=9216 model.dtype=bfloat16 model.attention=auto model.activation_checkpointing=true
  verl.optim.lr_scheduler_type=cosine verl.optim.lr_warmup_steps=-1
  verl.optim.lr_warmup_steps_ratio=0.1)
STAGE1_SFT_VERL=()                        # batch 128, 2 epochs, learning rate 2e-5: the defaults of examples/train_sft.py

# Stage 2: GRPO until every problem was asked once; RFT in 6 chunks of 8,000 problems, 2 answers each.
RL_VERL=(reward.shape=paper algorithm.dynamic_sampling=true verl.trainer.total_training_steps=null
  model.dtype=bfloat16 model.attention=auto model.activation_checkpointing=true
  trainer.micro_batch_tokens=17408 rollout.gpu_memory=0.8)
RL_LEVEL1_VERL=()
RFT_ITERATIONS=6
RFT_PROMPTS=8000
RFT_SAMPLES=2
RFT_SFT_VERL=(trainer.epochs=1)
RFT_MATCHED_SAMPLES=16
RL_ROLLOUTS=$((700 * 32 * 16))            # the authors' runs: about 700 updates of 32 prompts asked, 16 answers each

# Section 4.3: the paper's 50,000 two-number problems, 10 answers to each; 128 test problems a level, 32 answers to each.
COUNTDOWN_FILES=(stage1_level2/train test)
COUNTDOWN_OPTIONS=()
COUNTDOWN_SAMPLES=$STAGE1_SAMPLES
COUNTDOWN_FILTER=()
COUNTDOWN_TEST_PER_LEVEL=128
COUNTDOWN_TEST_SAMPLES=32

# Section 4.4: 1,000 answers to all test problems of levels 1 to 6; differences are to the first model.
PASSK_MODELS=(stage1 rl-level1 rl-level2 rft)
PASSK_FILES=(string_task/stage2_level1to8/test)
PASSK_LEVELS=(1 2 3 4 5 6)
PASSK_PER_LEVEL=0                         # all: about 256 a level
PASSK_SAMPLES=1000
