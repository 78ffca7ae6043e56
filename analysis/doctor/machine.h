// This machine and its environment: whether the library loads, whether its files can be written,
// what is set.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "doctor/elf.h"
#include "doctor/report.h"

namespace tprof::doctor {

struct Library {
  std::filesystem::path path;
  Elf elf;
  std::vector<std::string> functions;  // that it wraps: what it exports
};
// libtprof.so as it lies there. Throws BadInput where it is no such library.
Library describe_library(const std::filesystem::path& path);

std::map<std::string, std::string> environment();

// The newest of versions such as "2.28".
std::string newest(const std::set<std::string>& versions);

// LD_PRELOAD as `tprof run` sets it: ours first, unless it is in the list already.
std::string preload_list(const Library& library);

// Appends facts, settings, tools and findings.
void examine_machine(const Library& library, Report& report);

}  // namespace tprof::doctor
