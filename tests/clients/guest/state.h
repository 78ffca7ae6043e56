// Prints what a program can see of itself, as lines of text, so that two runs can be compared.
#pragma once

#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cfenv>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace guest {

inline std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Returns the value of a line such as "SigBlk:\t0000…" in a status file.
inline std::string field(const std::string& status, std::string_view name) {
  const std::size_t at = status.find("\n" + std::string(name) + ":");
  if (at == std::string::npos) return "?";
  const std::size_t begin = status.find_first_not_of(" \t", at + name.size() + 2);
  return status.substr(begin, status.find('\n', begin) - begin);
}

// Returns the name, blocked and pending signals, cores, nice value and policy of every thread.
inline std::vector<std::string> threads() {
  std::vector<std::string> all;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string status = "\n" + contents(task.path() / "status");
    const pid_t tid = std::stoi(task.path().filename());
    all.push_back(field(status, "Name") + " blocked " + field(status, "SigBlk") + " pending " +
                  field(status, "SigPnd") + " cores " + field(status, "Cpus_allowed_list") +
                  " nice " + std::to_string(getpriority(PRIO_PROCESS, static_cast<id_t>(tid))) +
                  " policy " + std::to_string(sched_getscheduler(tid)));
  }
  std::ranges::sort(all);
  return all;
}

// True once a tracer's thread has settled. It blocks every signal, and then has another name than
// the thread that started it.
inline bool all_settled() {
  return std::ranges::none_of(threads(), [](const std::string& thread) {
    return thread.starts_with("guest blocked fffffff");
  });
}

// Returns the number, the close-on-exec flag and the target of every open file.
inline std::vector<std::string> files() {
  std::vector<std::string> all;
  for (int fd = 0; fd < 1024; ++fd) {
    const int flags = fcntl(fd, F_GETFD);
    if (flags < 0) continue;
    std::error_code error;
    const auto target = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), error);
    all.push_back(std::to_string(fd) + ((flags & FD_CLOEXEC) != 0 ? " closed on exec " : " kept ") +
                  target.string());
  }
  return all;
}

inline std::string floating_point() {
  unsigned control = 0;
  asm volatile("stmxcsr %0" : "=m"(control));
  return std::to_string(fegetround()) + " " + std::to_string(fetestexcept(FE_ALL_EXCEPT)) + " " +
         std::to_string(control);
}

// Returns the signals whose disposition is not the default, with that disposition.
inline std::string dispositions() {
  std::string all;
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_DFL) continue;
    all += std::to_string(signal) + (action.sa_handler == SIG_IGN ? "i" : "h") +
           std::to_string(action.sa_flags & ~0x04000000) + " ";  // SA_RESTORER is libc's
  }
  return all;
}

inline std::string limits() {
  std::string all;
  for (int which = 0; which < RLIMIT_NLIMITS; ++which) {
    rlimit limit{};
    getrlimit(static_cast<decltype(RLIMIT_AS)>(which), &limit);
    all += std::to_string(limit.rlim_cur) + "/" + std::to_string(limit.rlim_max) + " ";
  }
  return all;
}

inline void print(const char* when, const char* what, const std::string& value) {
  std::printf("%s: %s: %s\n", when, what, value.c_str());
}

inline void print_state(const char* when) {
  while (!all_settled()) sched_yield();
  const std::string status = "\n" + contents("/proc/self/status");
  for (const std::string& thread : threads()) print(when, "thread", thread);
  for (const std::string& file : files()) print(when, "file", file);
  print(when, "last error", std::to_string(cudaPeekAtLastError()));
  print(when, "floating point", floating_point());
  print(when, "dispositions", dispositions());
  for (const char* name : {"ShdPnd", "SigIgn", "SigCgt", "Umask", "Seccomp", "NoNewPrivs"}) {
    print(when, name, field(status, name));
  }
  print(when, "folder", std::filesystem::current_path());
  print(when, "limits", limits());
  print(when, "dumpable", std::to_string(prctl(PR_GET_DUMPABLE)));
  print(when, "timer slack", std::to_string(prctl(PR_GET_TIMERSLACK)));
  print(when, "personality", std::to_string(personality(0xffffffff)));
  print(when, "core filter", contents("/proc/self/coredump_filter"));
  itimerval timer{};
  getitimer(ITIMER_REAL, &timer);
  print(when, "timer", std::to_string(timer.it_value.tv_sec));
  stack_t stack{};
  sigaltstack(nullptr, &stack);
  print(when, "signal stack", std::to_string(stack.ss_flags) + " " + std::to_string(stack.ss_size));
  for (char** variable = environ; *variable != nullptr; ++variable) {
    print(when, "variable", *variable);
  }
}

}  // namespace guest
