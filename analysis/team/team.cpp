#include "team/team.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "children/child.h"
#include "text/print.h"

namespace tprof::team {

void ask(Team& team, std::size_t of, Ask what, std::string_view details) {
  team.send(of, static_cast<char>(what) + std::string(details));
}

std::string answer(Team& team, std::size_t of) {
  std::string said = team.receive(of);
  if (!said.starts_with('!')) return said.substr(1);
  throw std::runtime_error("process " + std::to_string(of) + " of " + std::to_string(team.size()) +
                           ": " + said.substr(1));
}

void end(Team& team, int code) {
  for (std::size_t i = 1; i < team.size(); ++i) {
    try {
      ask(team, i, Ask::end, std::to_string(code));
    } catch (const std::exception&) {
      return;
    }
  }
}

namespace {

namespace fs = std::filesystem;

constexpr int kSayAfterMs = 10'000;
constexpr int kGiveUpAfterMs = 120'000;

long number_in(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? 0 : std::atol(value);
}

bool is_set(const char* variable) {
  return std::getenv(variable) != nullptr;
}

constexpr std::string_view kRanks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};

// True if what started this process is itself one of the step, such as a training script of which
// one process runs tprof: the others would never come. A launcher has no rank.
bool started_by_a_task() {
  std::ifstream in("/proc/" + std::to_string(getppid()) + "/environ", std::ios::binary);
  for (std::string variable; std::getline(in, variable, '\0');) {
    const std::string_view name = std::string_view(variable).substr(0, variable.find('='));
    if (std::ranges::find(kRanks, name) != std::end(kRanks)) return true;
  }
  return false;
}

// The program that loads MPI (bridge.c), which is where libtprof.so is.
fs::path bridge() {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path candidates[] = {folder / "tprof-mpi", folder.parent_path() / "lib/tprof-mpi"};
  for (const fs::path& candidate : candidates) {
    if (fs::exists(candidate)) return candidate;
  }
  throw std::runtime_error(fmt::format(
      "this is one of several MPI processes, but tprof-mpi, with which they share the work, is "
      "found neither as {} nor as {}: install it there (TPROF_MPI=off: each process works alone)",
      candidates[0].string(), candidates[1].string()));
}

// As in bridge.c.
struct Asked {
  std::uint64_t bytes;
  std::uint64_t peer = 0;
};
constexpr Asked kEnd{UINT64_MAX};
constexpr std::uint64_t kReceive = UINT64_MAX - 1;

class OfMpi : public Team {
 public:
  OfMpi() {
    const std::string program = bridge().string();
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      throw std::runtime_error(fmt::format("socketpair: {}", std::strerror(errno)));
    }
    // It gets whatever the launcher has left open for MPI.
    child_ = children::Child([&] {
      const std::string socket = std::to_string(dup(ends[1]));
      execl(program.c_str(), program.c_str(), socket.c_str(), nullptr);
      return 127;
    });
    close(ends[1]);
    socket_ = ends[0];
    if (child_.pid() < 0) throw std::runtime_error("fork: " + std::string(std::strerror(errno)));
  }
  // A process that has not come to its end leaves its socket closed without a word: then MPI ends
  // the others too.
  ~OfMpi() override {
    if (met_ && (over_ || size_ == 1)) ::send(socket_, &kEnd, sizeof kEnd, MSG_NOSIGNAL);
    close(socket_);
    child_.wait();
  }

  // Waits until MPI has begun in all processes. If one of them never runs tprof, it never does.
  void meet() {
    if (!readable(kSayAfterMs)) {
      text::say(
          "tprof: waiting for the other MPI processes to run the same command (TPROF_MPI=off: it "
          "works alone)\n");
      if (!readable(kGiveUpAfterMs - kSayAfterMs)) {
        child_.kill(SIGKILL);
        throw std::runtime_error(
            "the other processes that MPI started don't run this command: run it in all of them, "
            "or "
            "with TPROF_MPI=off");
      }
    }
    const std::string hello = message();
    if (hello.starts_with('!')) throw std::runtime_error(hello.substr(1));
    char* rest = nullptr;
    rank_ = std::strtoul(hello.c_str(), &rest, 10);
    size_ = std::strtoul(rest, nullptr, 10);
    met_ = true;
  }

  std::size_t rank() const override { return rank_; }
  std::size_t size() const override { return size_; }
  void send(std::size_t to, const std::string& message) override {
    const Asked asked{message.size(), to};
    write(&asked, sizeof asked);
    write(message.data(), message.size());
    note(message);
  }
  std::string receive(std::size_t from) override {
    const Asked asked{kReceive, from};
    write(&asked, sizeof asked);
    std::string got = message();
    note(got);
    return got;
  }

 private:
  void note(std::string_view message) {
    over_ = over_ || message.starts_with(static_cast<char>(Ask::end));
  }

  bool readable(int ms) const {
    pollfd p{socket_, POLLIN, 0};
    return poll(&p, 1, ms) != 0;
  }

  std::string message() {
    std::uint64_t n = 0;
    read(&n, sizeof n);
    std::string text(n, '\0');
    read(text.data(), n);
    return text;
  }

  [[noreturn]] static void lost() {
    throw std::runtime_error("MPI has ended: another of its processes may have died");
  }
  void write(const void* from, std::size_t n) const {
    for (const char* at = static_cast<const char*>(from); n != 0;) {
      const ssize_t put = ::send(socket_, at, n, MSG_NOSIGNAL);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) lost();
      at += put;
      n -= static_cast<std::size_t>(put);
    }
  }
  void read(void* to, std::size_t n) const {
    for (char* at = static_cast<char*>(to); n != 0;) {
      const ssize_t got = recv(socket_, at, n, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) lost();
      at += got;
      n -= static_cast<std::size_t>(got);
    }
  }

  children::Child child_;
  int socket_ = -1;
  std::size_t rank_ = 0;
  std::size_t size_ = 1;
  bool met_ = false;
  bool over_ = false;  // it said, or was told, that the work is done
};

}  // namespace

// True if the environment says so, as launchers make it for each process of a step that they start
// themselves. Variables of a batch script, which runs once for many tasks, do not count, nor those
// that a process of the step hands on, unless TPROF_MPI asks for it.
static bool told_to_be_of_several() {
  const char* asked = std::getenv("TPROF_MPI");
  const std::string_view wish = asked == nullptr ? "" : asked;
  if (wish == "off") return false;
  // Open MPI's mpirun; MPICH's and its kin's, and srun --mpi=pmi2; srun --mpi=pmix. (SLURM_NTASKS
  // is also of the batch script, which runs once.)
  const bool told = number_in("OMPI_COMM_WORLD_SIZE") > 1 || number_in("PMI_SIZE") > 1 ||
                    (number_in("SLURM_STEP_NUM_TASKS") > 1 && is_set("PMIX_RANK"));
  return told && (!wish.empty() || !started_by_a_task());
}

long told_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    if (is_set(name)) return number_in(name);
  }
  return 0;
}

Shared of_mpi() {
  if (!told_to_be_of_several()) return nullptr;
  auto team = std::make_shared<OfMpi>();
  team->meet();
  return team->size() > 1 ? team : nullptr;
}

}  // namespace tprof::team
