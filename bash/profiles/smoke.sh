# The tiny profile in the smallest sizes that still pass through every step: does the whole section run on this machine?
# Next to nothing is learnt. Both engines. Sourced by bash/lib.sh.
source bash/profiles/tiny.sh
STAGE1_PROBLEMS=400
STAGE2_PROBLEMS=1200
TEST_PER_LEVEL=8
VALIDATION_PER_LEVEL=4
RFT_ITERATIONS=2
RFT_PROMPTS=600
RFT_MATCHED_SAMPLES=4
RL_ROLLOUTS=2400                          # more than RL's 64: of these few models' answers some must be right

PRETRAIN_SINGLE=(steps=1500 packing.rows=8 packing.length=192 model.head_width=16 save_every=100)
STAGE1_SFT_SINGLE=(trainer.batch_rows=16 trainer.epochs=2 optim.lr=1e-3)
RL_SINGLE=(mesh.shard=false data.prompts_per_step=8 rollout.n=4 optim.lr=3e-4 trainer.steps=2 trainer.save_every=1
  trainer.eval_every=2)
RL_LEVEL1_SINGLE=()
RFT_SFT_SINGLE=(trainer.batch_rows=2 trainer.epochs=1 optim.lr=5e-4)

PRETRAIN_VERL=(steps=1500 save_every=100 model.head_width=32)
STAGE1_SFT_VERL=(trainer.batch_rows=16 trainer.epochs=2 optim.lr=1e-3)
RL_VERL=(data.prompts_per_step=8 rollout.n=4 trainer.steps=2 trainer.save_every=1 trainer.eval_every=2
  trainer.micro_batch_tokens=4096 algorithm.drop_equal_groups=false)
RL_LEVEL1_VERL=()
RFT_SFT_VERL=(trainer.batch_rows=2 trainer.epochs=1 optim.lr=5e-4)

# Numbers so small that a few of these few models' answers are right.
COUNTDOWN_OPTIONS=(style=compact "numbers=[1,20]" "target=[1,20]" whole=true)
PRETRAIN_COUNTDOWN_SINGLE=(mix.countdown=0.4 mix.two_numbers=0.8 mix.other_games=0.05 mix.largest_value=20)
PRETRAIN_COUNTDOWN_VERL=("${PRETRAIN_COUNTDOWN_SINGLE[@]}")
COUNTDOWN_PROBLEMS=30
COUNTDOWN_SAMPLES=4
COUNTDOWN_VALIDATION_PER_LEVEL=4
COUNTDOWN_TEST_PER_LEVEL=4
COUNTDOWN_TEST_SAMPLES=2

PASSK_PER_LEVEL=4
PASSK_SAMPLES=8
