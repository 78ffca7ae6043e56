// Reads and writes budgets, holds a run against one, and tells of it: `tprof budget`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "budget/compare.h"

namespace tprof::budget {

// Budgets as files: budget.schema.json says what is in them.
constexpr const char* kFileSchema = "tprof-budget/1";

Budget read_file(const std::filesystem::path& file);                       // throws BadInput
void write_file(const Budget& budget, const std::filesystem::path& file);  // a new one

// Steps that nobody marked may be micro-batches: what was found is read as the one, then as the
// other, and where nothing tells them apart nobody is blamed.
struct Reading {
  Measured measured{};
  Budget budget{};
  Compared compared{};
};

// Measures with steps that are made of so many of those that were found, where these may be
// micro-batches.
using Measure = std::function<Measured(std::uint64_t micro_batches)>;

// Compares with what the model should move. Throws BadInput that asks for the number of steps,
// where a step could be blamed for what may be several steps together.
Reading against(const Model& model, const Measure& measure);

// Compares with a budget, by steps of so many micro-batches. Throws BadInput that asks, where a
// step of the budget has the work of several that were found.
Reading against(const Budget& budget, std::uint64_t micro_batches, const Measure& measure);

// `width`: of lines of the table, where that can be done.
std::string to_text(const Measured& measured, const Compared& compared, std::size_t width);
std::string to_json(const job::Job& job, const Measured& measured, const Compared& compared);

}  // namespace tprof::budget
