# Two CPU cores, a from-scratch model of 0.2 M parameters, minutes. Sourced by bash/lib.sh.
# ENGINE=single (default): the single-file trainers and the built-in sampler, everything from pretraining to the table.
# ENGINE=verl: the same steps through verl, Ray and vLLM (bash/setup.sh --full), in smaller numbers and folders of its own.
DEVICE=cpu
DEFAULT_ENGINE=single
ENGINE=${ENGINE:-$DEFAULT_ENGINE}

# Problems: clean mode, compact prompts, chains of functions with frozen parameters; every step changes the string.
MODE=clean
STRING_OPTIONS=(style=compact "drop=[0,3]" frozen_parameters=true alphabet=abcdefghij "input_length=[3,6]" max_length=10)
STAGE1_PROBLEMS=6000
STAGE2_PROBLEMS=26000
LEVELS=6
PROBLEM_FILES=(string_task/stage2_level1/train string_task/stage2_level2/train string_task/stage2_level1to2/train
  string_task/validation_heldout string_task/validation_trained string_task/test_trained string_task/test_heldout)
LEVEL1TO2=string_task/stage2_level1to2/train
VALIDATION_FILES=(string_task/validation_heldout string_task/validation_trained)   # verl looks at the first only
TEST_FILES=(string_task/test_trained string_task/test_heldout)
MAX_PROMPT=64                             # tokens
MAX_RESPONSE=192

# Stage 1: rollouts under visible definitions, then SFT with the definitions hidden.
STAGE1_SAMPLES=2
MAX_CORRECT_RATIO=null                    # the base model solves most atoms always; dropping those would leave the hard ones
RFT_SAMPLES=2
RFT_MATCHED_SAMPLES=4                     # of more problems: equal correct answers count once in SFT

# ---- Section 4.3, Countdown: the level is how many numbers a problem gives
COUNTDOWN_FILES=(stage1_level2/train validation_level2 validation test_level2 test)
COUNTDOWN_OPTIONS=(style=compact "numbers=[1,20]" "target=[1,20]" whole=true)
COUNTDOWN_LEVEL2=10                       # to validate and to test on two numbers; all else is levels 3 to 5
COUNTDOWN_PROBLEMS=30                     # to learn from; a seed owns 30 to 50 of these two-number problems
COUNTDOWN_SAMPLES=64                      # answers to each of them …
COUNTDOWN_FILTER=(deduplicate=false)      # … which count as often as they were given
COUNTDOWN_VALIDATION_PER_LEVEL=64
COUNTDOWN_TEST_PER_LEVEL=128
COUNTDOWN_TEST_SAMPLES=32                 # answers to each test problem
# The base model made for sections 4.1 and 4.2 knows no numbers: a base model, and so a study, of its own.
PRETRAIN_COUNTDOWN_SINGLE=(steps=10000 mix.prior_chain=0.235 mix.prior_single=0.21 mix.countdown=0.33)   # comes after PRETRAIN_SINGLE
PRETRAIN_COUNTDOWN_VERL=("${PRETRAIN_COUNTDOWN_SINGLE[@]}")

# ---- ENGINE=single
if [[ $ENGINE == single ]]; then
  ROLLOUT_ENGINE=${ROLLOUT_ENGINE:-builtin}
  ARMS=${ARMS:-rl-level2 rft-matched rl-level1to2 rl-level1 rft}   # the longest first: two run at a time
  TEST_PER_LEVEL=500
  VALIDATION_PER_LEVEL=100
  RFT_ITERATIONS=3
  RFT_PROMPTS=4500                        # 27,000 answers for RL's 102,400: the proportion of the paper's scripts
  RL_ROLLOUTS=$((100 * 64 * 16))          # steps × prompts asked × answers
fi
# 10.8 M tokens, one in eight about a composition of other functions; the model and the rest: defaults of pretrain_tiny.
PRETRAIN_SINGLE=(steps=7000 mix.prior_chain=0.12 mix.prior_single=0.325)
SFT_SINGLE=(mesh.shard=false data.max_length=256 trainer.batch_rows=128)
STAGE1_SFT_SINGLE=(trainer.epochs=1 optim.lr=1e-4)  # the atoms are known: more would cost compositions
RL_SINGLE=(mesh.shard=false data.prompts_per_step=64 rollout.n=16 optim.lr=3e-4 optim.beta2=0.98
  optim.warmup_steps=5 trainer.steps=100 trainer.save_every=20 trainer.eval_every=20 trainer.micro_batch_tokens=4096)
RL_LEVEL1_SINGLE=()
RFT_SFT_SINGLE=(trainer.epochs=1 optim.lr=5e-4)

# ---- ENGINE=verl
if [[ $ENGINE == verl ]]; then
  ROLLOUT_ENGINE=${ROLLOUT_ENGINE:-vllm}
  ARMS=${ARMS:-rl-level1 rl-level2 rl-level1to2 rft}
  TEST_PER_LEVEL=256
  VALIDATION_PER_LEVEL=64
  RFT_ITERATIONS=3
  RFT_PROMPTS=6000
  RL_ROLLOUTS=$((30 * 64 * 16))           # steps × prompts asked × answers
fi
PRETRAIN_VERL=("${PRETRAIN_SINGLE[@]}" model.head_width=32)   # vLLM's CPU attention takes no narrower heads
SFT_VERL=(data.max_length=256 trainer.micro_batch_tokens=8192 verl.optim.lr_scheduler_type=cosine verl.optim.lr_warmup_steps=-1
  verl.optim.lr_warmup_steps_ratio=0.1)
STAGE1_SFT_VERL=(trainer.epochs=1 optim.lr=1e-4)
RL_VERL=(data.prompts_per_step=32 rollout.n=16 optim.lr=3e-4 optim.warmup_steps=5 trainer.steps=30 trainer.save_every=20
  trainer.eval_every=20 trainer.micro_batch_tokens=4096 algorithm.dynamic_sampling=true algorithm.max_generation_batches=30)
# After Stage 1 the atoms are nearly solved: dynamic sampling would look for groups with signal without end. The same
# 64 prompts a step instead, whatever they are worth.
RL_LEVEL1_VERL=(algorithm.dynamic_sampling=false algorithm.drop_equal_groups=false data.prompts_per_step=64)
RFT_SFT_VERL=(trainer.epochs=1 optim.lr=5e-4)

# ---- Section 4.4, pass@k: who is asked which problems, how often; differences are to the first
PASSK_MODELS=(stage1 rl-level1 rl-level2)
PASSK_FILES=(string_task/test_heldout)
PASSK_LEVELS=(1 2 3 4 5 6)
PASSK_PER_LEVEL=24                        # the first so many test problems of each level
PASSK_SAMPLES=128                         # answers to each: the largest k
