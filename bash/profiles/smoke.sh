# The tiny profile in the smallest sizes that still pass through every step: does the whole section run on this machine?
# Next to nothing is learnt. Sourced by bash/lib.sh.
source bash/profiles/tiny.sh
PRETRAIN=(steps=1500 save_every=100 threads=1)
STAGE1_PROBLEMS=400
STAGE2_PROBLEMS=1200
TEST_PER_LEVEL=8
VALIDATION_PER_LEVEL=4
STAGE1_SFT=(data.train_batch_size=16 trainer.total_epochs=2 optim.lr=1e-3)
RL=(data.train_batch_size=8 actor_rollout_ref.rollout.n=4 trainer.total_training_steps=2 trainer.save_freq=1
  trainer.test_freq=2 algorithm.filter_groups.enable=false lab.generation_batch_size=null)
RL_LEVEL1=()
RFT_ITERATIONS=2
RFT_PROMPTS=600
RFT_SFT=(data.train_batch_size=2 trainer.total_epochs=1 optim.lr=5e-4)
RL_GROUP=4
RL_ROLLOUTS=$((2 * 8 * 4))
