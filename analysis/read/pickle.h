// Reads Python pickles of plain values: None, booleans, numbers, strings, lists and dictionaries. A
// pickle is a program; only the opcodes that make such values are run, and any other is refused.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tprof::read {

// Returns the value as JSON. Throws BadInput for anything but one plain value. Memory and time are
// bounded by the file's size.
std::string json_of_pickle(const std::filesystem::path& file, std::string_view bytes);

}  // namespace tprof::read
