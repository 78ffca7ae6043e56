#include "read/window_line.h"

#include <simdjson.h>

#include <limits>

#include "read/json.h"

namespace tprof::read {

WindowLine parse_window_line(std::string_view line) {
  simdjson::dom::parser parser;
  const object args = object_of(object_in(parser, line), "args");
  WindowLine window{.from_ns = moment_ns(args, "ts"),
                    .to_ns = std::numeric_limits<std::int64_t>::max()};
  if (find(args, "dur")) window.to_ns = window.from_ns + moment_ns(args, "dur");
  return window;
}

}  // namespace tprof::read
