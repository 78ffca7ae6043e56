// What the names of NVTX ranges say of the phase of a training step that they are around.
#pragma once

#include <optional>
#include <string_view>

#include "read/events.h"

namespace tprof::stats {

// load: batches of data. other: told by nothing.
enum class StepPhase { load, forward, backward, optimizer, other };
inline constexpr std::string_view kStepPhaseNames[] = {"load", "forward", "backward", "optimizer",
                                                       "other"};
inline constexpr std::size_t kStepPhaseCount = std::size(kStepPhaseNames);

// As people and frameworks name them: "forward", "backward pass", "optimizer step",
// "DataLoader", "Optimizer.step#AdamW.step" (PyTorch), "DeepSpeedEngine.forward" (DeepSpeed),
// "forward-compute", "batch-generator" (Megatron). Nothing: the name is of no phase, or of several.
std::optional<StepPhase> phase_of_name(std::string_view name);

// The program's own word for it (tprof_phase), else by the name.
std::optional<StepPhase> phase_of_range(const read::Range& range);

}  // namespace tprof::stats
