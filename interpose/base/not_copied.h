// A base of classes whose objects stand for something that there is once.
#pragma once

namespace tprof {

class NotCopied {
 public:
  NotCopied() = default;
  NotCopied(const NotCopied&) = delete;
  NotCopied& operator=(const NotCopied&) = delete;
};

}  // namespace tprof
