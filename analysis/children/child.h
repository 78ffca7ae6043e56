// A child process.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>

namespace tprof::children {

class Child {
 public:
  // Whether it is killed when its parent ends.
  enum class Orphan { lives, dies };

  Child() = default;  // none
  // Runs `work` in a child, which exits with its result. If forking fails, pid() is -1 and errno
  // says why.
  explicit Child(const std::function<int()>& work, Orphan orphan = Orphan::lives);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child() { stop(); }

  pid_t pid() const { return pid_; }  // 0: none, or already waited for

  // Returns its wait status once it has ended.
  int wait();
  // The same; nullopt while it runs.
  std::optional<int> ended();
  void kill(int signal) const;
  // Kills it if it still runs.
  void stop();
  // Detaches it: it is neither waited for nor killed.
  void let_go() { pid_ = 0; }

 private:
  pid_t pid_ = 0;
};

}  // namespace tprof::children
