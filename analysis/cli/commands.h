// The commands of `tprof`: each adds itself to the command line and says what to run.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace tprof::cli {

// Exit codes of the contract.
enum Exit : int { kOk = 0, kFinding = 1, kBadUsage = 2 };

using Run = std::function<int()>;
Run add_anonymize(CLI::App& app);
Run add_merge(CLI::App& app);
Run add_check(CLI::App& app);
Run add_doctor(CLI::App& app);
Run add_summary(CLI::App& app);
Run add_run(CLI::App& app);
Run add_recover(CLI::App& app);

}  // namespace tprof::cli
