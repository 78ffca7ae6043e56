// Lines of device times: calls, each on the lane of its stream, and the error of the device's
// clock.
#pragma once

#include <cstdint>

#include "interpose/write/lines.h"

namespace tprof {

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
  out << "{\"cat\":\"" << kDeviceCategory << "\",\"name\":\"" << timed_name(view, r.dtype)
      << "\",\"ph\":\"X\",\"pid\":" << view.head().line_pid << ",\"tid\":" << kDeviceLane + stream
      << ",\"ts\":";
  timestamp(out, view, r.start_ns) << ",\"dur\":";
  out.micros(r.dur_ns) << ",\"args\":{";
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
  out << "{\"cat\":\"" << kBusyCategory
      << "\",\"name\":\"compute\",\"ph\":\"X\",\"pid\":" << view.head().line_pid
      << ",\"tid\":" << kBusyLane + device << ",\"ts\":";
  timestamp(out, view, from_ns) << ",\"dur\":";
  out.micros(to_ns - from_ns) << ",\"args\":{\"device\":" << device
                              << (unsure ? ",\"unsure\":true}},\n" : "}},\n");
}

inline void device_clock_line(Text& out, const View& view, const Record& r) {
  open_line(out, view, LineKind::device_clock, 0)
      << ",\"args\":{\"device\":" << r.comm - 1 << ",\"ts\":";
  timestamp(out, view, r.start_ns)
      << ",\"error_ns\":" << std::uint64_t{r.dur_ns}
      << ",\"drift_ppb\":" << static_cast<std::int64_t>(r.count) << "}},\n";
}

}  // namespace tprof
