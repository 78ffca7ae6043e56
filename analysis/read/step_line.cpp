#include "read/step_line.h"

#include <simdjson.h>

#include <algorithm>

#include "read/error.h"
#include "read/json.h"

namespace tprof::read {
namespace {

Row step_row(const object& o) {
  const std::string bucket = text(o, "bucket");
  const auto* known = std::ranges::find(kBuckets, bucket, &BucketInfo::name);
  if (known == std::end(kBuckets)) throw Malformed("unknown bucket '" + bucket + "'");
  const std::uint64_t calls = count(o, "calls");
  return {{.bucket = static_cast<Bucket>(known - kBuckets),
           .name = text(o, "name"),
           .dtype = text(o, "dtype"),
           .comm = optional_integer(o, "comm"),
           .device = optional_integer(o, "device"),
           .host_memory = host_memory(o),
           .bytes_class = integer_in(o, "bytes_class", -1, 63)},
          {.calls = calls,
           .count = count(o, "count"),
           .elements = count(o, "elements"),
           .bytes = count(o, "bytes"),
           .host_ns = count(o, "host_ns")}};
}

}  // namespace

StepLine parse_step_line(std::string_view line) {
  simdjson::dom::parser parser;
  const object args = object_of(object_in(parser, line), "args");
  StepLine step;
  step.step = integer_in(args, "step", 0, INT64_MAX);
  step.from_ns = moment_ns(args, "ts");
  step.to_ns = step.from_ns + moment_ns(args, "dur");
  step.launches = count_or_0(args, "launches");
  step.lost = flag(args, "lost");
  step.found = find(args, "found").has_value();
  for (const object& o : objects_of(args, "rows")) step.rows.push_back(step_row(o));
  step.rows.shrink_to_fit();
  return step;
}

}  // namespace tprof::read
