// How much of each call's time on the device was exposed: the part in which no computation of the
// same device ran (as HTA defines it). From marks that stand in the streams that compute, around
// what they were busy with, and from the times of calls; all on the host's clock. Knows nothing of
// CUDA.
//
// If a stream may have run dry unseen, the computation has a lower and an upper bound, and so
// has what is exposed. Where these are farther apart than the error that we promise, the call is
// not known, and counts by the reason.
#pragma once

#include <algorithm>
#include <cstdint>

#include "interpose/base/pages.h"
#include "interpose/format/ledger.h"
#include "interpose/format/ring_file.h"

namespace tprof::timing {

// A place in a stream that computes, and when the device came there. Marks of one stream come in
// their order.
struct Mark {
  enum class Kind : std::uint8_t {
    opens,   // work of the stream begins
    closes,  // all that was put into the stream before is done, and then it waits or is idle
    passes,  // all that was put into the stream before is done; more work may follow at once
  };
  std::uint64_t stream = 0;  // a number that no other stream of the process has
  std::uint32_t device = 0;
  Kind kind = Kind::opens;
  // The stream was not followed before it: it may have computed since the last mark or not.
  bool unseen_before = false;
  ExposureLost why = ExposureLost::no_pair;  // with unseen_before
  // The stream was found empty at dry_to_ns, by the host's clock, and had been given something
  // until dry_from_ns; 0: it never was since the last mark. It stayed so until idle_to_ns.
  // `dry_since_mark`: nothing was put into it behind the last mark.
  std::uint64_t dry_from_ns = 0;
  std::uint64_t dry_to_ns = 0;
  std::uint64_t idle_to_ns = 0;
  bool dry_since_mark = false;
  bool empty = false;             // as the mark was put into it
  std::uint64_t enqueued_ns = 0;  // when the host had it in the stream
  std::uint64_t at_ns = 0;        // when the device came there
};

struct CallSpan {
  std::uint64_t stream;
  std::uint32_t device;
  std::uint64_t start_ns;
  std::uint64_t end_ns;
  LedgerKey::Words key;
  std::uint64_t calls;
  bool copies = false;
};

// One call's verdict.
struct Exposed {
  LedgerKey::Words key;
  std::uint64_t calls;
  bool known;
  ExposureLost why;  // where it is not
  std::uint64_t device_ns;
  std::uint64_t exposed_ns;
  bool late;  // more than kNoiseNs of it are exposed for certain
};

class Exposure {
 public:
  // Two events in a row are no farther apart where nothing is between them.
  static constexpr std::uint64_t kNoiseNs = 10'000;
  // A known call's error: at most a twentieth of its device time and 0.2 ms. Half of the distance
  // of the bounds may be as much as this; the rest is for the clocks.
  static constexpr std::uint64_t tolerance_ns(std::uint64_t device_ns) {
    return device_ns / 25 + 150'000;
  }

  // A look at what the devices have come to. Streams without work are known until `now_ns` (0:
  // until the last look), unless a mark is still to come.
  void begin_look(std::uint64_t now_ns);
  // In this look: a mark that the device has not come to, and a call, begun on the host at
  // `since_ns`, that has no times yet.
  void standing(const Mark& mark);
  void running(std::uint64_t since_ns) { keep_ns_ = std::min(keep_ns_, since_ns); }
  void mark(const Mark& mark);
  void missed(const Mark& mark, ExposureLost why);  // the same, of unknown time
  void no_room() { no_room_ = true; }               // for another stream
  void call(const CallSpan& span);

  // Calls f(Exposed) for each call of which all is known now, but for copies on a stream that has
  // turned out to compute: they are computation. `last`: nothing more will come.
  template <typename F>
  void settle(bool last, F&& f) {
    std::size_t kept = 0;
    for (const CallSpan& call : calls_) {
      if (last || call.end_ns <= known_until(call.device)) {
        if (!call.copies || known(call.stream, call.device) == nullptr) f(judge(call));
      } else {
        calls_.data()[kept++] = call;
        keep_ns_ = std::min(keep_ns_, call.start_ns);
      }
    }
    calls_.cut(kept);
    forget_before(keep_ns_);
  }

 private:
  struct Segment {
    std::uint64_t from_ns;
    std::uint64_t to_ns;
    bool certain;
    ExposureLost why;
  };
  struct Stream {
    std::uint64_t stream;
    std::uint32_t device;
    bool open;
    bool standing;  // in this look
    bool missed;    // a mark
    ExposureLost why;
    std::uint64_t enqueued_ns;  // of the first standing mark
    std::uint64_t busy_from_ns;
    std::uint64_t last_ns;  // of the last mark
    Pages<Segment>* segments;
  };
  struct Piece {
    std::uint64_t from_ns;
    std::uint64_t to_ns;
  };
  static constexpr std::uint32_t kStreams = 256;
  static constexpr std::size_t kMostSegments = 1 << 16;  // of a stream

  Stream* known(std::uint64_t stream, std::uint32_t device);  // null: no mark of it was seen
  Stream* find(std::uint64_t stream, std::uint32_t device);   // or a new one; null: no room
  void add(Stream& s, std::uint64_t from_ns, std::uint64_t to_ns, bool certain, ExposureLost why);
  std::uint64_t known_until(std::uint32_t device) const;
  Exposed judge(const CallSpan& call);
  std::uint64_t covered(std::uint64_t from_ns, std::uint64_t to_ns);
  void forget_before(std::uint64_t ns);

  Stream stream_[kStreams] = {};
  std::uint32_t streams_ = 0;
  bool no_room_ = false;
  std::uint64_t looked_ns_ = 0;
  std::uint64_t keep_ns_ = UINT64_MAX;
  std::uint64_t forgotten_ns_ = 0;  // of the time before, segments are missing
  Pages<CallSpan> calls_;
  Pages<Piece> certain_;
  Pages<Piece> possible_;
};

}  // namespace tprof::timing
