// Budgets as files: budget.schema.json says what is in them.
#pragma once

#include <filesystem>

#include "budget/compare.h"

namespace tprof::budget {

constexpr const char* kFileSchema = "tprof-budget/1";

Budget read_file(const std::filesystem::path& file);                       // throws BadInput
void write_file(const Budget& budget, const std::filesystem::path& file);  // a new one

}  // namespace tprof::budget
