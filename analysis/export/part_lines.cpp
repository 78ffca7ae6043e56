// The lines that a merged trace has most of, and what goes with them.
#include <utility>

#include "export/part_editor.h"

namespace tprof::trace_export {

void PartEditor::put_call(const Member& member, std::string_view arguments) {
  go_to(member);
  const read::Event& e = call_;
  const Placement& to = *member.to;
  const CallNames::Name name = names_.of(e.name, e.bucket, e.bytes);
  pen_ << ",\n{\"name\":\"" << name.what << name.size << "\",\"cat\":\"" << bucket_name(e.bucket)
       << "\",\"ph\":\"X\",\"pid\":" << to.pid << ",\"tid\":" << e.thread << ",\"ts\":";
  pen_.micros(to.moved(e.ts_ns)) << ",\"dur\":";
  pen_.micros(e.dur_ns) << ",\"cname\":\"" << color_of(e.bucket) << "\",\"args\":{\"op\":\""
                        << std::string_view(e.name) << "\"," << arguments;
  if (to.position) put_position(member, e.ts_ns);
  count(member, e);
  put_turn_of_call(member, e);
  pen_.move_to(*out_);
}

void PartEditor::put_time(const Member& member, const read::OwnArguments& own) {
  go_to(member);
  const read::DeviceTime& t = time_;
  const Placement& to = *member.to;
  const TimedCall* call = t.launch ? nullptr : timed(t);
  const std::int64_t moved = to.moved(t.ts_ns);
  const std::int64_t called = to.moved(t.ts_ns - t.queued_ns);
  pen_ << ",\n{\"cat\":\"DEVICE\",\"name\":\"";
  const std::optional<Bucket> bucket = bucket_of(t, call);
  if (!bucket) {
    pen_ << std::string_view(t.name);
  } else {
    const auto name = names_.of(t.name, *bucket, call ? call->size() : std::nullopt);
    pen_ << name.what << name.size;
  }
  pen_ << "\",\"ph\":\"X\",\"pid\":" << to.pid << ",\"tid\":" << t.lane << ",\"ts\":";
  pen_.micros(moved) << ",\"dur\":";
  pen_.micros(t.dur_ns);
  if (bucket) {
    pen_ << ",\"cname\":\"" << color_of(*bucket) << "\",\"args\":{\"op\":\""
         << std::string_view(t.name) << "\",";
  } else {
    pen_ << ",\"args\":{";
  }
  if (to.drift_ns) {
    const auto before = static_cast<std::size_t>(own.queued.data() - own.all.data());
    pen_ << own.all.substr(0, before);
    pen_.micros(moved - called) << own.all.substr(before + own.queued.size());
  } else {
    pen_ << own.all;
  }
  if (to.position) put_position(member, t.ts_ns - t.queued_ns);
  put_arrows_of_time(member, t, call, {called, moved});
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
  const Placement& to = *member.to;
  pen_ << ",\n{\"cat\":\"BUSY\",\"name\":\"compute\",\"ph\":\"X\",\"pid\":" << to.pid
       << ",\"tid\":" << busy_.lane << ",\"ts\":";
  pen_.micros(to.moved(busy_.ts_ns)) << ",\"dur\":";
  pen_.micros(busy_.dur_ns) << ",\"args\":{\"device\":" << busy_.device;
  pen_ << (busy_.unsure ? std::string_view(",\"unsure\":true}}") : std::string_view("}}"));
  pen_.move_to(*out_);
}

// An arrow ends at the device time, if there is one.
void PartEditor::put_turn_of_call(const Member& member, const read::Event& e) {
  const std::optional<End> end = rank_ == nullptr ? std::nullopt : end_of(e);
  if (!end || e.unfinished || e.failed || e.captured) return;
  const RankTimeline::Comm* comm = rank_->comm(*e.comm);
  if (comm == nullptr) return;
  const TimedCall* timed = rank_->timed_call(e.ts_ns, e.thread, near_call_);
  if (timed != nullptr && timed->channel != kNoChannel) return;
  const std::uint32_t channel = end->is_message()
                                    ? timeline_->meets().find(end->channel(comm->comm, comm->rank))
                                    : comm->channel;
  append_turn(timeline_->meets(), channel, rank_->order, e.seq,
              {e.thread, touched_ns(e.ts_ns, e.dur_ns, end->receives)}, *member.to, pen_);
}

void PartEditor::put_arrows_of_time(const Member& member, const read::DeviceTime& t,
                                    const TimedCall* call, const Began& began) {
  if (rank_ == nullptr || rank_->is_drawn(t, call)) append_flow(t, began, member.to->pid, pen_);
  if (call == nullptr || call->channel == kNoChannel || !t.seq) return;
  const Touch touch{t.lane, touched_ns(t.ts_ns, t.dur_ns, t.name == "ncclRecv")};
  append_turn(timeline_->meets(), call->channel, rank_->order, *t.seq, touch, *member.to, pen_);
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
