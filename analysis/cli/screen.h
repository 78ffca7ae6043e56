// Puts text for people on standard output: on a terminal with colours, and with long sentences
// broken at its right side. Into a file or a pipe it goes as it is, one line per sentence. COLUMNS
// says how wide tables are there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tprof::cli {

std::optional<std::size_t> columns_of_terminal();  // nothing where standard output is none
std::size_t width_of_tables(std::size_t otherwise = SIZE_MAX);  // where nothing says how wide

// `json`: as it is, on terminals too.
void show(std::string_view text, bool json = false);

}  // namespace tprof::cli
