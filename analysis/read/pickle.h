// Python's pickles of plain values: none, truth, numbers, texts, lists and dictionaries. A pickle
// is a program, of which only the opcodes that make such values are run; any other is refused.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tprof::read {

// Returns the value as JSON. Throws BadInput for anything that is not one plain value. Memory and
// time are bounded by the size of the file.
std::string json_of_pickle(const std::filesystem::path& file, std::string_view bytes);

}  // namespace tprof::read
