#include "export/call_names.h"

#include "interpose/format/record.h"
#include "text/text.h"

namespace tprof::trace_export {
namespace {

struct Style {
  std::string_view title;
  std::string_view color;
};

// In the order of the buckets. Calls between GPUs are green, blue or purple, copies to and from the
// host are yellow and red, others grey.
constexpr Style kStyles[] = {{"AllGather", "thread_state_running"},
                             {"ReduceScatter", "rail_animation"},
                             {"H2D", "thread_state_iowait"},
                             {"D2H", "bad"},
                             {"AllReduce", "rail_response"},
                             {"Broadcast", "thread_state_runnable"},
                             {"Reduce", "vsync_highlight_color"},
                             {"AlltoAll", "detailed_memory_dump"},
                             {"P2P", "olive"},
                             {"expert parallelism", "background_memory_dump"},
                             {"other collectives", "good"},
                             {"D2D", "yellow"},
                             {"H2H", "grey"},
                             {"Managed", "generic_work"}};
static_assert(std::size(kStyles) == kBucketCount && Bucket::P2P == Bucket{8});

constexpr std::string_view kNccl = "nccl";

const Style& style_of(Bucket bucket) {
  return kStyles[static_cast<std::size_t>(bucket)];
}

}  // namespace

std::string_view color_of(Bucket bucket) {
  return style_of(bucket).color;
}

std::string_view title_of(Bucket bucket) {
  return style_of(bucket).title;
}

std::string size_for_name(std::uint64_t bytes) {
  std::string size = text::bytes(bytes);
  if (const auto none = size.find(".00 "); none != std::string::npos) size.erase(none, 3);
  return size;
}

CallNames::Name CallNames::of(std::string_view function, Bucket bucket,
                              std::optional<std::uint64_t> bytes) {
  if (function == kGroupName) return {"Group", {}};
  const std::string_view what = is_copy(bucket)               ? title_of(bucket)
                                : function.starts_with(kNccl) ? function.substr(kNccl.size())
                                                              : function;
  if (!bytes) return {what, {}};
  Known& known = sizes_[(*bytes ^ *bytes >> 6 ^ *bytes >> 12 ^ *bytes >> 20) % sizes_.size()];
  if (known.text.empty() || known.bytes != *bytes) known = {*bytes, ' ' + size_for_name(*bytes)};
  return {what, known.text};
}

}  // namespace tprof::trace_export
