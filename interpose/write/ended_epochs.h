// A sink: the ledgers with which epochs of the counts have ended, written before the next ledger.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "interpose/base/lock.h"
#include "interpose/write/line_batch.h"
#include "interpose/write/sink.h"

namespace tprof {

class EndedEpochs : public Sink {
 public:
  // May be called on any thread.
  void add(std::string_view ledger) {
    const LockGuard guard(lock_);
    ended_[fills_] << ledger;
    ++epochs_;
  }

  void tick(LineBatch& lines, const ClockAnchor& /*now*/) { write(lines); }

  void write(LineBatch& lines) {
    Text* ended = nullptr;
    std::uint32_t epochs = 0;
    {
      const LockGuard guard(lock_);
      if (epochs_ == 0) return;
      ended = &ended_[fills_];
      epochs = std::exchange(epochs_, 0);
      fills_ ^= 1;
    }
    lines.begin();
    lines.out() << ended->view();
    lines.next.epoch += epochs;
    lines.flush();
    ended->clear();
  }

 private:
  Lock lock_{LockOrder::ended};  // never held during a write
  Text ended_[2];
  std::uint32_t fills_ = 0;  // the text being filled; the other is being written
  std::uint32_t epochs_ = 0;
};

}  // namespace tprof
