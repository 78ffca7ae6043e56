// The names of the files beside a rank file.
#pragma once

#include <string_view>

#include "interpose/base/text.h"
#include "interpose/format/ring_file.h"

namespace tprof {

// Returns a rank file's name without its extension; empty: not the name of a rank file.
inline std::string_view stem_of(std::string_view rank_file) {
  constexpr std::string_view kEnd = ".json";
  const std::string_view name = file_name(rank_file);
  return name.ends_with(kEnd) ? prefix(name, name.size() - kEnd.size()) : std::string_view();
}

// Puts the path of a file beside the rank file: `dot`, the rank file's name, `end`.
inline void put_beside(FixedText to, const Head& head, std::string_view dot, std::string_view end) {
  to << bounded_text(head.directory) << "/" << dot << stem_of(bounded_text(head.rank_file)) << end;
}

}  // namespace tprof
