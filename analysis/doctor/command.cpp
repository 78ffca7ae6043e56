#include <elf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <optional>

#include "doctor/ask.h"
#include "doctor/examine.h"
#include "interpose/format/coverage.h"
#include "read/error.h"

namespace tprof::doctor {
namespace fs = std::filesystem;

namespace {

using check::Kind;
using check::Say;
using enum check::Severity;

// Python packages, and the kind of each as a library in a process.
constexpr std::pair<const char*, const char*> kMoversOfData[] = {
    {"jax", "jax"},          {"tensorflow", "tensorflow"},
    {"cupy", "cupy"},        {"mscclpp", "mscclpp"},
    {"vllm", "vllm"},        {"flashinfer", "flashinfer"},
    {"deep_ep", "deep_ep"},  {"uccl", "uccl"},
    {"torchcomms", "ncclx"}, {"kvikio", "cufile"}};

bool is_wrapped(std::string_view file) {
  return file.starts_with("libnccl.so") || file.starts_with("libcudart.so");
}

// True for NVIDIA's libraries, which contain their own CUDA runtime: their copies are internal.
bool is_vendors(std::string_view file) {
  return file.starts_with("libnccl.so") || file.starts_with("libcu") || file.starts_with("libnv") ||
         file.starts_with("libnpp");
}

class Examination {
 public:
  Examination(const Library& library, Report& report) : library_(library), report_(report) {}

  void run(const std::vector<std::string>& command) {
    const std::vector<Program> programs = programs_of(command);
    std::vector<std::string> path;
    for (const Program& p : programs) path.push_back(p.path.string());
    report_.fact("program", fmt::format("{}", fmt::join(path, " -> ")));
    for (const Program& p : programs) launcher(p);
    for (const Program& p : programs) {
      if (p.missing) {
        find(Say::program_not_found, Kind::not_found,
             {{"program", p.path.string()},
              {"script", programs[programs.size() - 2].path.string()}});
        return;
      }
      if (p.elf && !can_be_preloaded(p.path, *p.elf)) return;
    }
    const Program& last = programs.back();
    const Closure closure = libraries(last.path, last.elf->interpreter);
    remember_functions(closure);
    linked_in(last.path.string(), *last.elf, true);
    for (const auto& [name, file] : closure.libraries) shared_object(name, file);
    if (is_python(last.path)) python(last);
    functions();
  }

 private:
  void launcher(const Program& p) {
    const std::string name = p.path.filename().string();
    if (p.runs == Runs::in_container) {
      report_.find(Kind::container, {{"launcher", name}, {"glibc", kOldestGlibc}});
    } else if (p.runs == Runs::on_other_hosts) {
      report_.find(Kind::elsewhere, {{"launcher", name}});
    }
  }

  bool can_be_preloaded(const fs::path& path, const Elf& elf) {
    const auto no = [&](Kind kind, check::Values values = {}) {
      values.emplace_back("program", path.string());
      report_.find(kind, std::move(values));
      return false;
    };
    if (!elf.is_64_bit || elf.machine != library_.elf.machine) {
      return no(Kind::other_machine, {{"machine", machine_name(elf.machine)},
                                      {"is_64_bit", elf.is_64_bit},
                                      {"library_machine", machine_name(library_.elf.machine)}});
    }
    // In secure-execution mode ld.so ignores preloads by path (ld.so(8)).
    struct stat st {};
    const bool by_mode = stat(path.c_str(), &st) == 0 && (st.st_mode & (S_ISUID | S_ISGID)) != 0;
    if (by_mode || getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
      no(Kind::secure_execution, {{"by_mode", by_mode}});
    }
    if (elf.interpreter.empty()) return no(Kind::static_program);
    const std::string loader = fs::path(elf.interpreter).filename().string();
    if (!loader.starts_with("ld-linux") && !loader.starts_with("ld64")) {
      return no(loader.starts_with("ld-musl") ? Kind::musl : Kind::unknown_loader,
                {{"loader", elf.interpreter}});
    }
    std::error_code ignored;
    if (fs::exists(elf.interpreter, ignored)) return true;
    find(Say::loader_not_found, Kind::not_found,
         {{"program", path.string()}, {"loader", elf.interpreter}});
    return false;
  }

  Closure libraries(const fs::path& path, const std::string& loader) {
    loader_ = loader;
    Closure closure = libraries_of(path, loader_, preload_list(library_.path));
    for (const std::string& line : closure.complaints) {
      const bool version = line.find("version `GLIBC") != std::string::npos;
      report_.find(version ? Kind::old_glibc : Kind::loader,
                   {{"complaint", line}, {"glibc", kOldestGlibc}});
    }
    for (const auto& [name, file] : closure.libraries) {
      if (file.empty()) missing(name, path, error);
    }
    return closure;
  }

  // Adds a finding whose sentence is not its kind's own.
  void find(Say say, Kind kind, check::Values values) {
    check::Finding& found = report_.find(kind, std::move(values));
    found.text.what = say;
  }

  void missing(const std::string& name, const fs::path& of, check::Severity severity) {
    report_.find(Kind::not_found, {{"object", of.string()}, {"library", name}}).severity = severity;
  }

  // Returns nullopt if it is no ELF file; if it can't be read, adds a finding too.
  std::optional<Elf> elf_of(const std::string& path) {
    try {
      return read_elf(path);
    } catch (const read::BadInput& e) {
      report_.find(Kind::unreadable, {{"reason", e.what()}}).severity = warning;
      return std::nullopt;
    }
  }

  // Remembers which libraries of the closure have wrapped functions.
  void remember_functions(const Closure& closure) {
    for (const auto& [name, path] : closure.libraries) {
      if (!is_wrapped(name) || path.empty()) continue;
      const auto elf = elf_of(path);
      if (!elf) continue;
      for (const std::string& f : elf->defines) served_.try_emplace(f, path);
    }
  }

  void shared_object(const std::string& name, const std::string& path) {
    if (path.empty() || name.starts_with("ld-linux") || path == library_.path.string()) return;
    if (const KnownObject* k = known_object(path); k != nullptr && !is_tool(k->note)) {
      if (k->note != Note::nccl && k->note != Note::cudart && k->note != Note::driver) {
        report_.find_meaning(std::string(note_name(k->note)), path, env_);
      }
    } else if (!is_vendors(name)) {
      if (const auto elf = elf_of(path)) linked_in(path, *elf, false);
    }
  }

  // Finds a statically linked CUDA runtime or NCCL.
  void linked_in(const std::string& path, const Elf& elf, bool program) {
    const auto needs = [&](std::string_view prefix) {
      return std::ranges::any_of(elf.needed,
                                 [&](const std::string& n) { return n.starts_with(prefix); });
    };
    const bool runtime_inside =
        elf.hidden.contains("cudaMemcpyAsync") || elf.hidden.contains("cudaMemcpy") ||
        (!needs("libcudart.so") && elf.kernels && !elf.wants.contains("__cudaRegisterFatBinary"));
    if (runtime_inside && !check::in_force(env_, Setting::driver) &&
        !elf.wants.contains("cudaMemcpyAsync") && !elf.defines.contains("cudaMemcpyAsync")) {
      find(Say::cudart_linked_in, Kind::static_cudart, {{"path", path}});
    }
    const bool exported = elf.defines.contains("ncclAllGather");
    if (!exported && !needs("libnccl.so") &&
        (elf.hidden.contains("ncclAllGather") || elf.nccl_text)) {
      report_.find(Kind::static_nccl, {{"path", path}});
    }
    if (exported && program) find(Say::exports_nccl, Kind::interposer, {{"path", path}});
  }

  void python(const Program& interpreter) {
    const Python p = ask_python(interpreter.path);
    if (p.version.empty()) return report_.fact("Python", "did not answer");
    report_.fact("Python", p.version + "; its imports are known only when it runs");
    for (const auto& [name, folder] : p.packages) {
      if (name != "nvidia") report_.fact(name, folder.string());
    }
    if (p.packages.contains("torch")) pytorch(p);
    if (p.packages.contains("vllm") && !check::in_force(env_, Setting::dlsym)) {
      report_.find(Kind::pynccl);
    }
    for (const auto& [name, kind] : kMoversOfData) {
      const auto package = p.packages.find(name);
      if (package != p.packages.end()) report_.find_meaning(kind, package->second.string(), env_);
    }
  }

  // Looks at the libraries that PyTorch links to. If one is missing, takes the one from its wheels.
  void pytorch(const Python& p) {
    const fs::path torch = p.packages.at("torch");
    const fs::path object = torch / "lib/libtorch_cuda.so";
    std::error_code ignored;
    if (!fs::exists(object, ignored)) {
      report_.find(Kind::torch_without_cuda, {{"folder", torch.string()}});
      return;
    }
    Closure closure = libraries_of(object, loader_, "");
    for (auto& [name, path] : closure.libraries) {
      if (path.empty()) path = from_wheels(p, name);
      if (path.empty() && is_wrapped(name)) missing(name, object, warning);
    }
    remember_functions(closure);
    for (const auto& [name, path] : closure.libraries) {
      if (!path.starts_with(torch.string())) shared_object(name, path);
    }
  }

  // Looks in site-packages/nvidia/*/lib, whose libraries PyTorch opens itself.
  static std::string from_wheels(const Python& p, const std::string& name) {
    const auto nvidia = p.packages.find("nvidia");
    std::error_code ignored;
    if (nvidia == p.packages.end()) return {};
    for (const auto& entry : fs::directory_iterator(nvidia->second, ignored)) {
      const fs::path file = entry.path() / "lib" / name;
      if (fs::exists(file, ignored)) return file.string();
    }
    return {};
  }

  void functions() {
    for (const std::string& name : library_.elf.defines) {
      const auto s = served_.find(name);
      report_.functions.push_back({name, s == served_.end() ? "" : s->second});
    }
    if (!served_.empty()) return;
    report_.find(Kind::nothing_served, {{"dlsym", check::in_force(env_, Setting::dlsym)}});
  }

  const Library& library_;
  Report& report_;
  const check::Variables env_ = environment();  // where the command would run
  std::string loader_;
  std::map<std::string, std::string> served_;  // function -> library
};

}  // namespace

void examine_command(const std::vector<std::string>& command, const Library& library,
                     Report& report) {
  Examination(library, report).run(command);
}

}  // namespace tprof::doctor
