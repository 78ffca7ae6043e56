// Formats figures in as few characters as a table of 80 columns has for them.
#pragma once

#include <cstdint>
#include <string>

namespace tprof::live {

std::string compact(double n);              // "9,999", "123.4k", "12.3M": at most six
std::string compact_bytes(double n);        // "1.02 GiB": at most eight
std::string compact_time(std::int64_t ns);  // "1.02 s", "104 ms"

}  // namespace tprof::live
