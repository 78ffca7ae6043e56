// `tprof budget` takes these from the command line (option rows: budget_row.cpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace tprof::cli {

struct BudgetOptions {
  std::string model;
  double params = 0;
  double root_params = -1;         // -1: not known
  std::int64_t layers = 0;         // 0: not known
  std::string dtype;               // empty: bf16
  std::string reduce_dtype;        // empty: dtype
  std::int64_t shards = 0;         // 0: as in the trace
  std::int64_t micro_batches = 0;  // 0: one, as far as anybody knows
  std::string accumulate;
  bool no_reshard = false;
  bool offload = false;
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;
  std::int64_t tp_reductions = 2;
  std::filesystem::path file;
  std::filesystem::path write;
  double tolerance = 0;    // percent
  std::int64_t steps = 0;  // 0: as found
};

}  // namespace tprof::cli
