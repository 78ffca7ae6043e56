#include "doctor/python.h"

#include <nlohmann/json.hpp>
#include <regex>

#include "doctor/ask.h"

namespace tprof::doctor {
namespace {

// find_spec of a name without a dot imports nothing.
constexpr const char* kQuestion = R"(
import importlib.util, json, platform
found = {}
for name in ("torch", "vllm", "cupy", "jax", "tensorflow", "nvidia", "deepspeed", "mscclpp",
             "deep_ep", "kvikio"):
    try:
        spec = importlib.util.find_spec(name)
        found[name] = list(spec.submodule_search_locations or [spec.origin])[0]
    except Exception:
        pass
print("tprof:" + json.dumps({"version": platform.python_version(), "found": found}))
)";

}  // namespace

bool is_python(const std::filesystem::path& program) {
  static const std::regex name("(python|pypy)[0-9.]*[a-z]*");
  return std::regex_match(program.filename().string(), name);
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
