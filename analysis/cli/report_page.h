// The file of tprof report's page.
#pragma once

#include <filesystem>
#include <string>

namespace tprof::cli {

// Writes the page to a file, which gets its name when it is whole, or to standard output ("-"). An
// older page makes way for it. Throws BadInput if anything else has that name, or if it can't be
// written.
void write_page(const std::string& page, const std::filesystem::path& to);

}  // namespace tprof::cli
