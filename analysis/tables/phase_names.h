// Derives the phase of a training step from the names of the NVTX ranges around calls.
#pragma once

#include <optional>
#include <string_view>

#include "read/events.h"

namespace tprof::tables {

// load: batches of data. other: nothing tells the phase.
enum class StepPhase { load, forward, backward, optimizer, other };
inline constexpr std::string_view kStepPhaseNames[] = {"load", "forward", "backward", "optimizer",
                                                       "other"};

// Knows the names that people and frameworks use: "forward", "backward pass", "optimizer step",
// "DataLoader", "Optimizer.step#AdamW.step" (PyTorch), "DeepSpeedEngine.forward" (DeepSpeed),
// "forward-compute", "batch-generator" (Megatron). Nullopt if the name has no phase, or several.
std::optional<StepPhase> phase_of_name(std::string_view name);

// Takes the program's own word for it (tprof_phase), else goes by the name.
std::optional<StepPhase> phase_of_range(const read::Range& range);

}  // namespace tprof::tables
