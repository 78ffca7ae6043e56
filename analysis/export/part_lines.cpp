// Calls, their times on the device and computation, and what goes with them.
#include <utility>

#include "export/part_editor.h"

namespace tprof::trace_export {

PartEditor::Written PartEditor::written(std::int64_t lane, std::int64_t ts_ns,
                                        std::int64_t dur_ns) const {
  const std::int64_t cut = rank_ == nullptr ? 0 : rank_->slices.cut_ns(lane, ts_ns, dur_ns);
  return {lane, ts_ns, dur_ns - cut, cut};
}

void PartEditor::put_slice(const Written& slice, const Placement& to) {
  pen_.slice(to.pid, slice.lane, to.moved(slice.ts_ns), to.length(slice.ts_ns, slice.dur_ns));
}

void PartEditor::put_arguments(std::string_view arguments, const Written& slice) {
  if (slice.cut_ns == 0) {
    pen_ << arguments;
    return;
  }
  (pen_ << arguments.substr(0, arguments.size() - 2) << ",\"cut\":").micros(slice.cut_ns) << "}}";
}

void PartEditor::put_call(const Member& member, std::string_view arguments) {
  go_to(member);
  const read::Event& e = call_;
  const Placement& to = *member.to;
  const CallNames::Name name = names_.of(e.name, e.bucket, e.bytes);
  const Written slice = written(e.thread, e.ts_ns, e.dur_ns);
  pen_ << ",\n{\"name\":\"" << name.what << name.size << "\",\"cat\":\"" << bucket_name(e.bucket)
       << "\",";
  if (e.unfinished) {
    pen_ << "\"ph\":\"B\",\"pid\":" << to.pid << ",\"tid\":" << e.thread << ",\"ts\":";
    pen_.micros(to.moved(e.ts_ns));
  } else {
    put_slice(slice, to);
  }
  pen_ << ",\"cname\":\"" << color_of(e.bucket) << "\",\"args\":{\"op\":\""
       << std::string_view(e.name) << "\",";
  put_arguments(arguments, slice);
  if (to.position) put_position(member, e.ts_ns);
  count(member, e);
  put_turn_of_call(member, e, slice);
  pen_.move_to(*out_);
}

// `queued` says how long before its time a call was made, on the axis of the merged trace.
void PartEditor::put_time(const Member& member, std::string_view arguments) {
  go_to(member);
  const read::DeviceTime& t = time_;
  const Placement& to = *member.to;
  const TimedCall* call = t.launch ? nullptr : timed(t);
  const Touch called{t.thread, to.moved(t.ts_ns - t.queued_ns)};
  const Written slice = written(t.lane, t.ts_ns, t.dur_ns);
  pen_ << ",\n{\"cat\":\"DEVICE\",\"name\":\"";
  const std::optional<Bucket> bucket = bucket_of(t, call);
  if (!bucket) {
    pen_ << std::string_view(t.name) << "\",";
    put_slice(slice, to);
    pen_ << ",\"args\":{";
  } else {
    const auto name = names_.of(t.name, *bucket, call ? call->size() : std::nullopt);
    pen_ << name.what << name.size << "\",";
    put_slice(slice, to);
    pen_ << ",\"cname\":\"" << color_of(*bucket) << "\",\"args\":{\"op\":\""
         << std::string_view(t.name) << "\",";
  }
  constexpr std::string_view kQueued = "\"queued\":";
  if (const std::size_t at = arguments.find(kQueued); to.drift_ns && at != arguments.npos) {
    (pen_ << arguments.substr(0, at) << kQueued).micros(to.moved(t.ts_ns) - called.ts_ns);
    arguments.remove_prefix(arguments.find_first_of(",}", at));
  }
  put_arguments(arguments, slice);
  if (to.position) put_position(member, t.ts_ns - t.queued_ns);
  if (rank_ == nullptr || rank_->is_drawn(t, call)) {
    append_flow(next_id_, to.pid, called,
                {t.lane, to.moved(touched_ns(t.ts_ns, slice.dur_ns, false))}, pen_);
  }
  if (call != nullptr && t.seq) {
    put_turn(member, call->channel, *t.seq, t.name == "ncclRecv", t.dur_ns, slice);
  }
  pen_.move_to(*out_);
}

void PartEditor::count(const Member& member, const read::Event& e) {
  if (e.unfinished || e.failed || e.captured) return;
  const std::int64_t window = member.to->moved(e.ts_ns) / timeline_->window_ns();
  add(moved_, {member.to->pid, window, e.bucket, e.bytes});
}

void PartEditor::put_position(const Member& member, std::int64_t ts_ns) {
  pen_.move_to(*out_);
  append_position(*member.to, ts_ns, *out_);
}

void PartEditor::put_busy(const Member& member) {
  go_to(member);
  const Written slice = written(busy_.lane, busy_.ts_ns, busy_.dur_ns);
  pen_ << ",\n{\"cat\":\"BUSY\",\"name\":\"compute\",";
  put_slice(slice, *member.to);
  pen_ << ",\"args\":{\"device\":" << busy_.device;
  put_arguments(busy_.unsure ? ",\"unsure\":true}}" : "}}", slice);
  pen_.move_to(*out_);
}

// An arrow ends at the device time, if there is one.
void PartEditor::put_turn_of_call(const Member& member, const read::Event& e,
                                  const Written& slice) {
  const std::optional<End> end = rank_ == nullptr ? std::nullopt : end_of(e);
  if (!end || e.unfinished || e.failed || e.captured) return;
  const RankTimeline::Comm* comm = rank_->comm(*e.comm);
  if (comm == nullptr) return;
  const TimedCall* timed = rank_->timed_call(e.ts_ns, e.thread, near_call_);
  if (timed != nullptr && timed->channel != kNoChannel) return;
  const std::uint32_t channel = end->is_message()
                                    ? timeline_->meets().find(end->channel(comm->comm, comm->rank))
                                    : comm->channel;
  put_turn(member, channel, e.seq, end->receives, e.dur_ns, slice);
}

// It came when it was measured to, and is drawn within what is written.
void PartEditor::put_turn(const Member& member, std::uint32_t channel, std::uint64_t seq,
                          bool receives, std::int64_t dur_ns, const Written& slice) {
  const Placement& to = *member.to;
  const std::int64_t came = to.moved(touched_ns(slice.ts_ns, dur_ns, receives));
  const std::int64_t drawn = to.moved(touched_ns(slice.ts_ns, slice.dur_ns, receives));
  append_turn(timeline_->meets(), channel, rank_->order, {seq, came}, to.pid, {slice.lane, drawn},
              pen_);
}

std::optional<Bucket> PartEditor::bucket_of(const read::DeviceTime& t, const TimedCall* call) {
  if (call != nullptr) return static_cast<Bucket>(call->bucket);
  return t.launch || rank_ == nullptr ? std::nullopt : rank_->bucket_without_line(t.name);
}

const TimedCall* PartEditor::timed(const read::DeviceTime& t) {
  if (rank_ == nullptr) return nullptr;
  return rank_->timed_call(t.ts_ns - t.queued_ns, t.thread, near_time_);
}

}  // namespace tprof::trace_export
