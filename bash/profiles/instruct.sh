# One 80 GB GPU, an instruct model of 1–3 B parameters, problems whose depth is real, through verl. Sourced by bash/lib.sh.
DEFAULT_ENGINE=verl
ENGINE=${ENGINE:-$DEFAULT_ENGINE}
ROLLOUT_ENGINE=${ROLLOUT_ENGINE:-vllm}
BASE_MODEL=${BASE_MODEL:-models/Qwen/Qwen2.5-1.5B-Instruct}
ARMS=${ARMS:-rl-level1 rl-level2 rl-level1to2 rft}

# Problems: clean mode, English prompts; held-out functions differ in behaviour from the trained ones.
MODE=clean
STRING_OPTIONS=(style=json)
STAGE1_PROBLEMS=20000
STAGE2_PROBLEMS=20000
LEVELS=8
TEST_PER_LEVEL=256
VALIDATION_PER_LEVEL=32
PROBLEM_FILES=(string_task/stage2_level1/train string_task/stage2_level2/train string_task/stage2_level1to2/train
  string_task/validation_heldout string_task/validation_trained string_task/test_trained string_task/test_heldout)
LEVEL1TO2=string_task/stage2_level1to2/train
VALIDATION_FILES=(string_task/validation_heldout string_task/validation_trained)   # verl looks at the first only
TEST_FILES=(string_task/test_heldout string_task/test_trained)
MAX_PROMPT=1024                           # tokens
MAX_RESPONSE=2048

STAGE1_SAMPLES=8
MAX_CORRECT_RATIO=1.0
RFT_ITERATIONS=6
RFT_PROMPTS=3300
RFT_SAMPLES=16
RFT_MATCHED_SAMPLES=16
RL_ROLLOUTS=$((300 * 128 * 16))           # steps × prompts asked × answers

SFT_VERL=(data.max_length=3072 model.dtype=bfloat16 model.attention=auto model.activation_checkpointing=true
  verl.optim.lr_scheduler_type=cosine verl.optim.lr_warmup_steps=-1
  verl.optim.lr_warmup_steps_ratio=0.1)
STAGE1_SFT_VERL=()
RL_VERL=(data.prompts_per_step=64 rollout.n=16 optim.lr=2e-6 trainer.steps=300 algorithm.dynamic_sampling=true
  model.dtype=bfloat16 model.attention=auto model.activation_checkpointing=true
  trainer.micro_batch_tokens=17408 rollout.gpu_memory=0.8)
RL_LEVEL1_VERL=()
RFT_SFT_VERL=(trainer.epochs=1)

# ENGINE=single: the same sizes through the single-file trainers.
SFT_SINGLE=(model.dtype=bfloat16 model.activation_checkpointing=true data.max_length=3072)
STAGE1_SFT_SINGLE=()
RL_SINGLE=(model.dtype=bfloat16 model.activation_checkpointing=true data.prompts_per_step=64 rollout.n=16
  algorithm.dynamic_sampling=true optim.lr=2e-6 trainer.steps=300 trainer.save_every=25 trainer.eval_every=25)
RL_LEVEL1_SINGLE=()
RFT_SFT_SINGLE=(trainer.epochs=1)

# ---- Section 4.3, Countdown: the level is how many numbers a problem gives
COUNTDOWN_FILES=(stage1_level2/train validation_level2 validation test_level2 test)
COUNTDOWN_OPTIONS=(style=text "numbers=[1,100]" "target=[1,999]")
COUNTDOWN_LEVEL2=128                      # to validate and to test on two numbers; all else is levels 3 to 5
COUNTDOWN_PROBLEMS=1400                   # to learn from; a seed owns about 1,500 of these two-number problems
COUNTDOWN_SAMPLES=10                      # answers to each of them
COUNTDOWN_FILTER=()                       # more settings of filter_rollouts
COUNTDOWN_VALIDATION_PER_LEVEL=32
COUNTDOWN_TEST_PER_LEVEL=128
COUNTDOWN_TEST_SAMPLES=32                 # answers to each test problem

# ---- Section 4.4, pass@k: who is asked which problems, how often; differences are to the first
PASSK_MODELS=(stage1 rl-level1 rl-level2 rft)
PASSK_FILES=(string_task/test_heldout)
PASSK_LEVELS=(1 2 3 4 5 6)
PASSK_PER_LEVEL=64                        # the first so many test problems of each level
PASSK_SAMPLES=256                         # answers to each: the largest k
