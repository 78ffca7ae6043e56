// Several processes that do one piece of work together: each reads its share of the files, then all
// know all.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tprof::team {

// Another process gave up while this one was at work.
class GaveUp : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Every process does the same exchanges in the same order, so what decides about one must be the
// same in all. One that can't go on says so in end(), and no other waits for it in vain.
class Team {
 public:
  Team() = default;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  virtual ~Team() = default;

  virtual std::size_t rank() const = 0;
  virtual std::size_t size() const = 0;

  // Returns what each process gave, in the order of their ranks. Throws GaveUp.
  std::vector<std::string> all_of(std::string mine);

  // How all have ended: the highest code, and what the first of the others that failed said.
  struct Ended {
    int code = 0;
    std::string error{};
  };
  // The last exchange of a process, and the only one that those may still be in that failed.
  Ended end(int code, const std::string& error);

 protected:
  bool over() const { return over_; }  // it has ended, or another one has

 private:
  virtual std::vector<std::string> exchange(std::string mine) = 0;

  bool over_ = false;
};

using Shared = std::shared_ptr<Team>;  // null: this process is alone

// True if item `i` of several is this process's to do.
inline bool is_mine(const Team& team, std::size_t i) {
  return i % team.size() == team.rank();
}

// Calls take(i, bytes) in every process for each of n items: `mine` are those of this process,
// packed, in their order. They come in no order, a part of them at a time.
void share(Team& team, std::size_t n, std::vector<std::string> mine,
           const std::function<void(std::size_t, std::string_view)>& take);

}  // namespace tprof::team
