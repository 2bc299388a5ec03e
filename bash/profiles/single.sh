# One 80 GB GPU: the study of the tiny profile with a model of 11 M parameters, all 25 functions with their parameters,
# longer strings and levels 1 to 8, from nothing. Sourced by bash/lib.sh.
# ENGINE=single (default): the single-file trainers; bash/section41_42/stage2_rl_level2_verl.sh repeats one arm through verl.
DEVICE=gpu
DEFAULT_ENGINE=single
ENGINE=${ENGINE:-$DEFAULT_ENGINE}
LANES=${LANES:-4}                         # arms at a time on the one GPU: a small model leaves it idle otherwise

# Problems: clean mode, compact prompts, functions with parameters.
MODE=clean
STRING_OPTIONS=(style=compact alphabet=abcdefghijklmnopqrstuvwxyz "input_length=[3,10]" max_length=24)
STAGE1_PROBLEMS=20000
STAGE2_PROBLEMS=45000
LEVELS=8
TEST_PER_LEVEL=500
VALIDATION_PER_LEVEL=100
PROBLEM_FILES=(string_task/stage2_level1/train string_task/stage2_level2/train string_task/stage2_level1to2/train
  string_task/validation_heldout string_task/validation_trained string_task/test_trained string_task/test_heldout)
LEVEL1TO2=string_task/stage2_level1to2/train
VALIDATION_FILES=(string_task/validation_heldout string_task/validation_trained)   # verl looks at the first only
TEST_FILES=(string_task/test_trained string_task/test_heldout)
MAX_PROMPT=160                            # tokens
MAX_RESPONSE=800

STAGE1_SAMPLES=2
MAX_CORRECT_RATIO=null                    # the base model solves most atoms always; dropping those would leave the hard ones
ARMS=${ARMS:-rl-level2 rft-matched rl-level1to2 rl-level1 rft}
RFT_ITERATIONS=6
RFT_PROMPTS=6900                          # 82,800 answers for RL's 307,200: the proportion of the paper's scripts
RFT_SAMPLES=2
RFT_MATCHED_SAMPLES=16
RL_ROLLOUTS=$((150 * 128 * 16))           # steps × prompts asked × answers

# 300 M tokens over 160 other functions. Text is made by $(nproc) - 2 processes ahead of the GPU.
base_model=(model.layers=6 model.width=384 model.heads=6 model.head_width=64 model.feed_forward=1024)
text=("drop=[]" mix.prior_functions=160 mix.frozen_parameters=false mix.letters=abcdefghijklmnopqrstuvwxyz
  mix.longest_input=10 mix.max_length=24 mix.deepest=8)
PRETRAIN_SINGLE=("${base_model[@]}" "${text[@]}" packing.rows=128 packing.length=1024 steps=2300 warmup=200
  learning_rate=1e-3 dtype=bfloat16 save_every=200 workers=$(($(nproc) > 3 ? $(nproc) - 2 : 1)))
SFT_SINGLE=(model.dtype=bfloat16 data.max_length=1000 trainer.batch_rows=128 trainer.micro_batch_tokens=65536)
STAGE1_SFT_SINGLE=(trainer.epochs=2 optim.lr=2e-4)
RL_SINGLE=(model.dtype=bfloat16 data.prompts_per_step=128 rollout.n=16 optim.lr=1e-4 optim.warmup_steps=5
  trainer.steps=150 trainer.save_every=50 trainer.eval_every=25 trainer.micro_batch_tokens=65536)
RL_LEVEL1_SINGLE=()
RFT_SFT_SINGLE=(trainer.epochs=1 optim.lr=2e-4)

# ENGINE=verl: the same sizes through verl and vLLM; the base model is made in the same way.
if [[ $ENGINE == verl ]]; then ROLLOUT_ENGINE=${ROLLOUT_ENGINE:-vllm}; else ROLLOUT_ENGINE=${ROLLOUT_ENGINE:-builtin}; fi
PRETRAIN_VERL=("${PRETRAIN_SINGLE[@]}")
SFT_VERL=(data.max_length=1000 model.dtype=bfloat16 model.attention=auto model.activation_checkpointing=true
  verl.optim.lr_scheduler_type=cosine verl.optim.lr_warmup_steps=-1
  verl.optim.lr_warmup_steps_ratio=0.1)
STAGE1_SFT_VERL=(trainer.epochs=2 optim.lr=2e-4)
RL_VERL=(data.prompts_per_step=128 rollout.n=16 optim.lr=1e-4 optim.warmup_steps=5 trainer.steps=150
  trainer.save_every=50 trainer.eval_every=25 algorithm.drop_equal_groups=false
  model.dtype=bfloat16 model.attention=auto model.activation_checkpointing=true
  trainer.micro_batch_tokens=17408 rollout.gpu_memory=0.8)
RL_LEVEL1_VERL=()
RFT_SFT_VERL=(trainer.epochs=1 optim.lr=2e-4)

# ---- Section 4.3, Countdown: the level is how many numbers a problem gives
COUNTDOWN_FILES=(stage1_level2/train validation_level2 validation test_level2 test)
COUNTDOWN_OPTIONS=(style=compact "numbers=[1,100]" "target=[1,199]" whole=true)
COUNTDOWN_LEVEL2=128                      # to validate and to test on two numbers; all else is levels 3 to 5
COUNTDOWN_PROBLEMS=1200                   # to learn from; a seed owns about 1,350 of these two-number problems
COUNTDOWN_SAMPLES=8                       # answers to each of them; equal ones count once
COUNTDOWN_FILTER=()                       # more settings of filter_rollouts
COUNTDOWN_VALIDATION_PER_LEVEL=64
COUNTDOWN_TEST_PER_LEVEL=128
COUNTDOWN_TEST_SAMPLES=32                 # answers to each test problem
# The base model made for sections 4.1 and 4.2 knows no numbers: a base model, and so a study, of its own.
PRETRAIN_COUNTDOWN_SINGLE=(mix.countdown=0.3 mix.largest_value=199)   # comes after PRETRAIN_SINGLE
PRETRAIN_COUNTDOWN_VERL=("${PRETRAIN_COUNTDOWN_SINGLE[@]}")

# ---- Section 4.4, pass@k: who is asked which problems, how often; differences are to the first
PASSK_MODELS=(stage1 rl-level1 rl-level2 rft-matched)
PASSK_FILES=(string_task/test_heldout)
PASSK_LEVELS=(1 2 3 4 5 6)
PASSK_PER_LEVEL=128                       # the first so many test problems of each level
PASSK_SAMPLES=256                         # answers to each: the largest k
