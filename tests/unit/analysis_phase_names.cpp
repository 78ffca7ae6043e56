// tables/: what the names of NVTX ranges say of a phase.
#include "catch2.h"
#include "tables/rank_calls.h"

using namespace tprof;
using tables::phase_of_name;
using enum tables::StepPhase;

TEST_CASE("ranges are of the phase that people and frameworks name them for") {
  for (const char* name : {"forward", "Forward pass", "fwd", "DeepSpeedEngine.forward",
                           "forward-compute", "FSDP::pre_forward", "forward_step 3"}) {
    CHECK(phase_of_name(name) == forward);
  }
  for (const char* name : {"backward", "bwd_1", "DeepSpeedEngine.backward", "backward-compute",
                           "DeepSpeedZeroOptimizer_Stage3.backward"}) {
    CHECK(phase_of_name(name) == backward);
  }
  for (const char* name :
       {"optimizer", "optimizer step", "Optimizer.step#AdamW.step", "DeepSpeedEngine.step",
        "DeepSpeedZeroOptimizer_Stage3.step", "optim_update"}) {
    CHECK(phase_of_name(name) == optimizer);
  }
  for (const char* name :
       {"DataLoader", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "batch-generator", "data loading", "get_batch"}) {
    CHECK(phase_of_name(name) == load);
  }
}

TEST_CASE("ranges around several phases, or of none, say nothing") {
  for (const char* name :
       {"", "step 12", "train_step", "forward-backward", "layer 3", "straightforward",
        "load_checkpoint", "optimizer state", "DeepSpeedEngine.__init__", "update"}) {
    CHECK_FALSE(phase_of_name(name));
  }
}
