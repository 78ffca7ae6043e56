#include "doctor/loader.h"

#include <sstream>

#include "doctor/ask.h"

namespace tprof::doctor {

// "	libc.so.6 => /lib/libc.so.6 (0x7f…)", "	libx.so => not found", "	/lib/ld.so (0x7f…)"
Closure libraries_of(const std::filesystem::path& object, const std::string& loader,
                     const std::string& preload) {
  Closure closure;
  const std::string path = std::filesystem::absolute(object).string();
  // As ldd does: unlike --list it goes on behind a library that is not found.
  const Answer answer =
      ask({loader, path}, {{"LD_PRELOAD", preload}, {"LD_TRACE_LOADED_OBJECTS", "1"}});
  std::istringstream lines(answer.text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('\t')) {
      if (!line.empty()) closure.complaints.push_back(line);
      continue;
    }
    const std::string text = line.substr(1);
    const std::size_t arrow = text.find(" => ");
    const std::size_t address = text.rfind(" (0x");
    if (arrow != std::string::npos) {
      const std::size_t from = arrow + 4;
      closure.libraries[text.substr(0, arrow)] =
          address == std::string::npos || address < from ? "" : text.substr(from, address - from);
    } else if (text.starts_with('/') && address != std::string::npos) {
      const std::string file = text.substr(0, address);
      closure.libraries[std::filesystem::path(file).filename()] = file;
    }
  }
  return closure;
}

}  // namespace tprof::doctor
