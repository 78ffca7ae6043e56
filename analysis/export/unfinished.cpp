#include "export/unfinished.h"

#include <algorithm>
#include <csignal>
#include <mutex>
#include <thread>
#include <vector>

namespace tprof::trace_export {
namespace fs = std::filesystem;

namespace {

std::mutex g_lock;
std::vector<fs::path> g_unfinished;

// In a thread of its own, where anything may be called. It keeps the lock: nothing new is begun.
[[noreturn]] void end_by(int signal) {
  g_lock.lock();
  std::error_code ignored;
  for (auto path = g_unfinished.rbegin(); path != g_unfinished.rend(); ++path) {
    fs::remove(*path, ignored);
  }
  std::signal(signal, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  raise(signal);
  std::_Exit(128 + signal);
}

}  // namespace

void remove_unfinished_on_signals() {
  sigset_t ending;
  sigemptyset(&ending);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    // What is ignored (nohup, a shell's background) stays so.
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) {
      sigaddset(&ending, signal);
    }
  }
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  std::thread([ending] {
    int signal = 0;
    if (sigwait(&ending, &signal) == 0) end_by(signal);
  }).detach();
}

Unfinished::Unfinished(fs::path path) : path_(std::move(path)) {
  const std::lock_guard guard(g_lock);
  g_unfinished.push_back(path_);
}

Unfinished::~Unfinished() {
  const std::lock_guard guard(g_lock);
  const auto found = std::ranges::find(g_unfinished, path_);
  if (found != g_unfinished.end()) g_unfinished.erase(found);
}

}  // namespace tprof::trace_export
