#include "doctor/ask.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

#include "children/child.h"

namespace tprof::doctor {
namespace {

constexpr unsigned kPatienceSeconds = 20;
constexpr std::size_t kMaxText = std::size_t{4} << 20;

// Reads until the pipe is closed. Returns false if it is too much.
bool read_all(int fd, std::string& text) {
  char buffer[65536];
  for (ssize_t n = 0; (n = ::read(fd, buffer, sizeof buffer)) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
    if (text.size() > kMaxText) return false;
  }
  return true;
}

// find_spec imports nothing if the name has no dot.
constexpr const char* kQuestion = R"(
import importlib.util, json, platform
found = {}
for name in ("torch", "vllm", "cupy", "jax", "tensorflow", "nvidia", "deepspeed", "mscclpp",
             "flashinfer", "deep_ep", "uccl", "torchcomms", "kvikio"):
    try:
        spec = importlib.util.find_spec(name)
        found[name] = list(spec.submodule_search_locations or [spec.origin])[0]
    except Exception:
        pass
print("tprof:" + json.dumps({"version": platform.python_version(), "found": found}))
)";

}  // namespace

void become(const std::vector<std::string>& command, const Settings& settings) {
  for (const auto& [name, value] : settings) {
    if (value.empty()) {
      unsetenv(name.c_str());
    } else {
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& arg : command) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
}

Answer ask(const std::vector<std::string>& command, const Settings& settings) {
  Answer answer;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return answer;
  children::Child child([&] {
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    alarm(kPatienceSeconds);  // exec keeps it
    become(command, settings);
    return 127;
  });
  close(ends[1]);
  if (child.pid() > 0) {
    if (!read_all(ends[0], answer.text)) child.kill(SIGKILL);
    const int status = child.wait();
    if (WIFEXITED(status) && WEXITSTATUS(status) != 127) answer.code = WEXITSTATUS(status);
  }
  close(ends[0]);
  return answer;
}

// Takes lines such as "	libc.so.6 => /lib/libc.so.6 (0x7f…)", "	libx.so => not found",
// "	/lib/ld.so (0x7f…)"
Closure libraries_of(const std::filesystem::path& object, const std::string& loader,
                     const std::string& preload) {
  Closure closure;
  const std::string path = std::filesystem::absolute(object).string();
  // Asks like ldd: unlike --list, this goes on after a missing library.
  const Answer answer =
      ask({loader, path}, {{"LD_PRELOAD", preload}, {"LD_TRACE_LOADED_OBJECTS", "1"}});
  std::istringstream lines(answer.text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('\t')) {
      if (!line.empty()) closure.complaints.push_back(line);
      continue;
    }
    const std::string text = line.substr(1);
    const std::size_t arrow = text.find(" => ");
    const std::size_t address = text.rfind(" (0x");
    if (arrow != std::string::npos) {
      const std::size_t from = arrow + 4;
      closure.libraries[text.substr(0, arrow)] =
          address == std::string::npos || address < from ? "" : text.substr(from, address - from);
    } else if (text.starts_with('/') && address != std::string::npos) {
      const std::string file = text.substr(0, address);
      closure.libraries[std::filesystem::path(file).filename()] = file;
    }
  }
  return closure;
}

bool is_python(const std::filesystem::path& program) {
  const std::string name = program.filename().string();
  return name.starts_with("python") || name.starts_with("pypy");
}

Python ask_python(const std::filesystem::path& interpreter) {
  Python python;
  const Answer answer = ask({interpreter.string(), "-c", kQuestion}, {});
  const std::size_t at = answer.text.find("tprof:{");
  if (at == std::string::npos) return python;
  const std::string line = answer.text.substr(at + 6, answer.text.find('\n', at) - at - 6);
  const auto said = nlohmann::json::parse(line, nullptr, false);
  if (!said.is_object()) return python;
  python.version = said.value("version", "");
  const auto found = said.value("found", nlohmann::json::object());
  for (const auto& [name, folder] : found.items()) {
    if (folder.is_string()) python.packages[name] = folder.get<std::string>();
  }
  return python;
}

}  // namespace tprof::doctor
