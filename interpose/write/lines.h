// The lines of a rank file, one function per kind. Each writes one JSON object and ",\n". Used by
// the writer in the traced process and by recovery outside it.
#pragma once

#include <cstdint>
#include <iterator>
#include <string_view>

#include "interpose/base/clock.h"
#include "interpose/base/text.h"
#include "interpose/format/control.h"
#include "interpose/format/line_kinds.h"
#include "interpose/format/view.h"

namespace tprof {

// {"name":NAME,"ph":PH,"pid":P,"tid":T
inline Text& open_line(Text& out, const View& view, LineKind kind, std::uint32_t tid) {
  return out << info_of(kind).start << ",\"ph\":\"M\",\"pid\":" << view.head().line_pid
             << ",\"tid\":" << tid;
}

inline Text& timestamp(Text& out, const View& view, std::uint64_t mono_ns) {
  const std::uint64_t base = view.head().base_mono_ns;
  return out.micros(mono_ns > base ? mono_ns - base : 0);
}

// {"function":"step","file":"/home/me/train.py","line":31}
[[gnu::cold]] inline void site_frames(Text& out, std::string_view frames) {
  Comma comma;
  const auto field = [&](char end) {
    const std::size_t size = std::min(frames.find(end), frames.size());
    const std::string_view text = prefix(frames, size);
    frames = without_prefix(frames, size + 1);
    return text;
  };
  while (!frames.empty()) {
    out << comma.next() << "{\"function\":";
    out.string(field(kSiteField)) << ",\"file\":";
    out.string(field(kSiteField)) << ",\"line\":";
    const std::string_view line = field(kSiteField);
    std::int32_t number = 0;
    std::from_chars(line.data(), line.data() + line.size(), number);
    out << number << '}';
    field(kSiteFrame);
  }
}

// {"object":"/usr/lib/libc.so.6","build_id":"93c0…","offsets":[161930,162021]}: consecutive frames
// of one object.
[[gnu::cold]] inline void native_frames(Text& out, const View& view, const Site& site) {
  Comma comma;
  const std::uint32_t n = std::min<std::uint32_t>(site.frames, kMaxNativeFrames);
  for (std::uint32_t i = 0; i < n;) {
    const std::uint32_t number = site.frame[i].object();
    out << comma.next() << '{';
    if (const SiteObject* object = view.site_object(number)) {
      out << "\"object\":";
      out.string(bounded_text(object->path)) << ',';
      const std::size_t size =
          std::min<std::size_t>(object->build_id_size, sizeof object->build_id);
      if (size != 0) out << "\"build_id\":\"";
      for (std::size_t b = 0; b < size; ++b) out.hex(object->build_id[b], 2);
      if (size != 0) out << "\",";
    }
    out << "\"offsets\":[" << site.frame[i].offset();
    while (++i < n && site.frame[i].object() == number) out << ',' << site.frame[i].offset();
    out << "]}";
  }
}

// Writes the call site with this number.
[[gnu::cold]] inline void site_line(Text& out, const View& view, std::uint32_t number) {
  const Site* site = view.site(number);
  if (site == nullptr) return;
  open_line(out, view, LineKind::site, 0) << ",\"args\":{\"site\":" << number;
  if (const SiteObject* object = view.site_object(site->caller.object())) {
    out << ",\"object\":";
    out.string(bounded_text(object->path)) << ",\"offset\":" << site->caller.offset();
  }
  if (site->symbol[0] != '\0') (out << ",\"symbol\":").string(bounded_text(site->symbol));
  out << ",\"frames\":[";
  site_frames(out, bounded_text(site->python));
  out << ']';
  if (site->frames != 0) {
    out << ",\"native\":[";
    native_frames(out, view, *site);
    out << ']';
  }
  if (site->frames_cut) out << ",\"native_cut\":true";
  out << "}},\n";
}

[[gnu::cold]] inline void thread_name_line(Text& out, const View& view, std::uint32_t tid,
                                           std::string_view name) {
  open_line(out, view, LineKind::thread_name, tid) << ",\"args\":{\"name\":";
  out.string(name) << "}},\n";
}

[[gnu::cold]] inline void comm_line(Text& out, const View& view, std::uint32_t index) {
  const Communicator* c = view.comm(index);
  if (c == nullptr) return;
  open_line(out, view, LineKind::comm, 0) << ",\"args\":{\"comm\":" << index << ",\"id\":";
  out.hex16_or_null(c->id) << ",\"name\":";
  c->has_name ? out.string(bounded_text(c->name)) : out << "null";
  out << ",\"nranks\":" << c->nranks << ",\"rank\":" << c->rank << ",\"device\":" << c->device
      << ",\"parent\":";
  out.number_or_null(c->parent != 0, c->parent);
  if (c->birth != 0) (out << ",\"birth\":").hex16(c->birth);
  if (c->alias != 0) (out << ",\"alias\":").hex16(c->alias);
  constexpr const char* kChildren[] = {"splits", "shrinks", "grows"};
  for (std::size_t i = 0; i < std::size(kChildren); ++i) {
    if (c->children[i] != 0) out << ",\"" << kChildren[i] << "\":" << c->children[i];
  }
  if (c->ended != 0) out << ",\"ended\":\"" << view.any_function_name(c->ended) << '"';
  out << "}},\n";
}

// Gives rank and world size if the launcher set neither.
[[gnu::cold]] inline void identity_line(Text& out, const View& view, const Communicator& largest) {
  open_line(out, view, LineKind::identity, 0)
      << ",\"args\":{\"rank\":" << largest.rank << ",\"world_size\":" << largest.nranks << "}},\n";
}

[[gnu::cold]] inline void clock_line(Text& out, const View& view, const ClockAnchor& anchor) {
  open_line(out, view, LineKind::clock, 0)
      << ",\"args\":{\"clock\":[" << anchor.mono_ns - view.head().base_mono_ns << ','
      << anchor.real_ns << ',' << anchor.bracket_ns << "]}},\n";
}

// Writes the handle for a stream's number in later lines.
[[gnu::cold]] inline void stream_line(Text& out, const View& view, std::uint32_t number,
                                      std::uint64_t handle) {
  open_line(out, view, LineKind::stream, 0)
      << ",\"args\":{\"stream\":" << number << ",\"handle\":\"";
  out.pointer(handle) << "\"}},\n";
}

// `stream`: its number, 0 for the default stream, kStreamUnknown if the table of streams was full.
inline constexpr std::uint32_t kStreamUnknown = UINT32_MAX;
inline void stream_arg(Text& out, std::uint32_t stream) {
  if (stream == 0) return;
  out << ",\"stream\":";
  out.number_or_null(stream != kStreamUnknown, stream);
}

inline void site_arg(Text& out, const Record& r) {
  if (r.site != 0) out << ",\"site\":" << std::uint32_t{r.site};
}

inline void host_memory_arg(Text& out, HostMemory kind) {
  const std::string_view name = host_memory_name(kind);
  if (!name.empty()) out << ",\"host_memory\":\"" << name << '"';
}

// Each argument ends with a comma, since a mandatory one follows.
inline void result_args(Text& out, const Record& r, bool unfinished) {
  if (unfinished) out << "\"unfinished\":true,";
  if (r.result != 0) out << "\"result\":" << std::uint64_t{r.result} << ',';
  if (r.captured) out << "\"captured\":true,";
}

// Leaves out what readers can derive: elements are bytes / size of dtype, and a copy's dtype
// defaults to byte. There is a line for every call, 200,000 in an hour.
inline void call_args(Text& out, const View& view, const Record& r, std::uint32_t stream) {
  const Amount a = amount(view, r.function, r.bucket, r.dtype, r.comm, r.count);
  if (is_copy(r.bucket)) {
    out << "\"bytes\":" << a.bytes;
    const std::uint32_t element = view.head().copy_element_size;
    if (element != 1) out << ",\"dtype\":\"" << dtype_name(r.dtype, element) << '"';
    out << ",\"device\":";
    out.number_or_null(r.comm != 0, r.comm - 1);
    host_memory_arg(out, static_cast<HostMemory>(r.host_memory));
    stream_arg(out, stream);
    if (r.sync) out << ",\"sync\":true";
    site_arg(out, r);
    return;
  }
  out << "\"comm\":";
  out.number_or_null(r.comm != 0, r.comm)
      << ",\"seq\":" << r.seq << ",\"count\":" << r.count << ",\"dtype\":\""
      << dtype_name(r.dtype, 1) << "\",\"bytes\":" << a.bytes;
  if (r.peer != kNoPeer) out << ",\"peer\":" << r.peer;
  if (r.reduce != 0 && r.reduce < sizeof kReduceNames / sizeof *kReduceNames) {
    out << ",\"reduce\":\"" << kReduceNames[r.reduce] << '"';
  }
  stream_arg(out, stream);
  if (r.group != 0) out << ",\"group\":" << r.group;
  if (r.in_place) out << ",\"in_place\":true";
  site_arg(out, r);
}

// Begins an event, after its name and category: X, or B if it never ended.
inline void open_event(Text& out, const View& view, std::uint32_t tid, std::uint64_t start_ns,
                       std::uint64_t dur_ns, bool unfinished = false) {
  out << ",\"ph\":\"" << (unfinished ? 'B' : 'X') << "\",\"pid\":" << view.head().line_pid
      << ",\"tid\":" << tid << ",\"ts\":";
  timestamp(out, view, start_ns);
  if (!unfinished) (out << ",\"dur\":").micros(dur_ns);
  out << ",\"args\":{";
}

inline void open_call_line(Text& out, const View& view, const Record& r, std::string_view name,
                           std::string_view category, std::uint32_t tid, bool unfinished) {
  out << "{\"name\":\"" << name << "\",\"cat\":\"" << category << '"';
  open_event(out, view, tid, r.start_ns, r.dur_ns, unfinished);
  result_args(out, r, unfinished);
}

// A call that moves data.
inline void call_line(Text& out, const View& view, const Record& r, std::uint32_t tid,
                      std::uint32_t stream, bool unfinished) {
  if (view.function(r.function) == nullptr) return;
  open_call_line(out, view, r, view.function_name(r.function), bucket_name(r.bucket), tid,
                 unfinished);
  call_args(out, view, r, stream);
  out << "}},\n";
}

// A call of a communicator's life. Its category comes first, since it moves no data.
[[gnu::cold]] inline void life_line(Text& out, const View& view, const Record& r, std::uint32_t tid,
                                    bool unfinished) {
  out << "{\"cat\":\"" << kLifeCategory << "\",\"name\":\"" << view.any_function_name(r.dtype)
      << '"';
  open_event(out, view, tid, r.start_ns, r.dur_ns, unfinished);
  result_args(out, r, unfinished);
  out << "\"comm\":";
  out.number_or_null(r.comm != 0, r.comm) << ",\"id\":";
  out.hex16_or_null(r.count);
  if (r.stream != 0) out << ",\"nranks\":" << r.stream;
  if (r.peer != kNoPeer) out << ",\"rank\":" << r.peer;
  out << ",\"seq\":" << r.seq;
  if (r.group != 0) out << ",\"group\":" << r.group;
  if (r.group != 0 && r.sync) out << ",\"group_ends\":true";
  out << "}},\n";
}

inline constexpr std::string_view kLaunchName = "cudaGraphLaunch";
inline void launch_line(Text& out, const View& view, const Record& r, std::uint32_t tid,
                        std::uint32_t stream) {
  open_call_line(out, view, r, kLaunchName, kGraphCategory, tid, false);
  out << "\"graph\":" << std::uint32_t{r.comm} << ",\"launches\":1";
  stream_arg(out, stream);
  site_arg(out, r);
  out << "}},\n";
}

inline void group_line(Text& out, const View& view, const Record& r, std::uint32_t tid) {
  open_line(out, view, LineKind::group, tid) << ",\"args\":{\"group\":" << r.group << ",\"ts\":";
  timestamp(out, view, r.start_ns) << ",\"dur\":";
  out.micros(r.dur_ns) << ",\"result\":" << std::uint64_t{r.result} << ",\"calls\":" << r.count;
  if (r.function == kMetaGroup && r.sync) out << ",\"simulated\":true";
  out << "}},\n";
}

inline void device_lane_line(Text& out, const View& view, std::uint32_t stream) {
  open_line(out, view, LineKind::thread_name, kDeviceLane + stream)
      << ",\"args\":{\"name\":\"device, ";
  out << (stream == 0 ? "default stream" : "stream ");
  if (stream != 0) out << stream;
  out << "\"}},\n";
}

inline std::string_view timed_name(const View& view, std::uint8_t function) {
  if (function == kMetaLaunch) return kLaunchName;
  return function == kMetaGroup ? kGroupName : view.function_name(function);
}

// The category comes first, so that no reader takes it for a call, which has its own line.
inline void device_line(Text& out, const View& view, const Record& r, std::uint32_t stream) {
  const bool launch = r.dtype == kMetaLaunch;
  out << "{\"cat\":\"" << kDeviceCategory << "\",\"name\":\"" << timed_name(view, r.dtype) << '"';
  open_event(out, view, kDeviceLane + stream, r.start_ns, r.dur_ns);
  if (launch) {
    out << "\"graph\":" << r.comm;
  } else if (is_copy(r.bucket)) {
    (out << "\"device\":").number_or_null(r.comm != 0, r.comm - 1);
  } else {
    (out << "\"comm\":").number_or_null(r.comm != 0, r.comm) << ",\"seq\":" << r.seq;
  }
  stream_arg(out, stream);
  out << ",\"call_tid\":" << static_cast<std::uint32_t>(r.peer) << ",\"queued\":";
  out.micros(r.start_ns > r.count ? r.start_ns - r.count : 0);
  if (r.group != 1) out << ",\"calls\":" << r.group;
  if (is_copy(r.bucket) && r.captured != 0) out << ",\"computes\":true";
  if (const std::uint64_t ns = waited_ns(r); ns != 0) (out << ",\"waited\":").micros(ns);
  out << "}},\n";
}

inline void busy_lane_line(Text& out, const View& view, std::uint32_t device) {
  open_line(out, view, LineKind::thread_name, kBusyLane + device)
      << ",\"args\":{\"name\":\"compute, device " << device << "\"}},\n";
}

inline void busy_line(Text& out, const View& view, std::uint32_t device, std::uint64_t from_ns,
                      std::uint64_t to_ns, bool unsure) {
  out << "{\"cat\":\"" << kBusyCategory << "\",\"name\":\"compute\"";
  open_event(out, view, kBusyLane + device, from_ns, to_ns - from_ns);
  out << "\"device\":" << device << (unsure ? ",\"unsure\":true}},\n" : "}},\n");
}

inline void device_clock_line(Text& out, const View& view, const Record& r) {
  open_line(out, view, LineKind::device_clock, 0)
      << ",\"args\":{\"device\":" << r.comm - 1 << ",\"ts\":";
  timestamp(out, view, r.start_ns)
      << ",\"error_ns\":" << std::uint64_t{r.dur_ns}
      << ",\"drift_ppb\":" << static_cast<std::int64_t>(r.count) << "}},\n";
}

// An executed command (tprof_control). `argument`: "" if the command has none.
[[gnu::cold]] inline void control_line(Text& out, const View& view, std::uint64_t now_ns,
                                       std::string_view command, std::string_view argument,
                                       Obeyed result) {
  open_line(out, view, LineKind::control, 0) << ",\"args\":{\"ts\":";
  timestamp(out, view, now_ns) << ",\"ctl\":\"" << command << '"';
  if (!argument.empty()) (out << ",\"argument\":").string(argument);
  out << ",\"obeyed\":\"" << kObeyedNames[static_cast<std::size_t>(result)] << "\"}},\n";
}

}  // namespace tprof
