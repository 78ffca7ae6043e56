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

using diagnose::Kind;
using enum diagnose::Severity;

// Python packages, and the kind that each has as an object in a process.
constexpr std::pair<const char*, const char*> kMoversOfData[] = {{"jax", "jax"},
                                                                 {"tensorflow", "tensorflow"},
                                                                 {"cupy", "cupy"},
                                                                 {"mscclpp", "mscclpp"},
                                                                 {"kvikio", "cufile"}};

bool is_wrapped(std::string_view file) {
  return file.starts_with("libnccl.so") || file.starts_with("libcudart.so");
}

// True for the vendor's libraries, which bring a CUDA runtime of their own: their copies are their
// own.
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
        report_.find(Kind::not_found, error,
                     fmt::format("{}: no such program, but {} wants it", p.path.string(),
                                 programs[programs.size() - 2].path.string()),
                     "install it, or correct the script's first line");
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
      report_.find(
          Kind::container, note,
          name + " starts the program in a container, which can't be looked into from here",
          fmt::format("mount the library and the output folder into it, pass LD_PRELOAD and "
                      "TPROF_OUTPUT_DIR on, and run tprof doctor inside; its glibc has to be "
                      "{} or newer",
                      kOldestGlibc));
    } else if (p.runs == Runs::on_other_hosts) {
      report_.find(Kind::elsewhere, note,
                   name + " starts programs on other hosts; what was looked at is here",
                   name + " tprof doctor tells of each of them");
    }
  }

  bool can_be_preloaded(const fs::path& path, const Elf& elf) {
    const auto no = [&](Kind kind, std::string_view text, std::string next) {
      report_.find(kind, error, fmt::format("{} {}", path.string(), text), std::move(next));
      return false;
    };
    if (!elf.is_64_bit || elf.machine != library_.elf.machine) {
      return no(Kind::other_machine,
                fmt::format("is for {}{}, and the library for {}", machine_name(elf.machine),
                            elf.is_64_bit ? "" : " (32 bits)", machine_name(library_.elf.machine)),
                "use a libtprof.so that was built for it");
    }
    // In secure-execution mode ld.so ignores preloads by path (ld.so(8)).
    struct stat st {};
    const bool by_mode = stat(path.c_str(), &st) == 0 && (st.st_mode & (S_ISUID | S_ISGID)) != 0;
    if (by_mode || getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
      no(Kind::secure_execution,
         fmt::format("{}, so its dynamic loader ignores LD_PRELOAD",
                     by_mode ? "is setuid or setgid" : "has file capabilities"),
         "run a copy without that, or start the program that it runs without it");
    }
    if (elf.interpreter.empty()) {
      return no(Kind::static_program,
                "is linked statically: there is no dynamic loader to preload anything",
                "link it dynamically");
    }
    const std::string loader = fs::path(elf.interpreter).filename().string();
    if (!loader.starts_with("ld-linux") && !loader.starts_with("ld64")) {
      return no(loader.starts_with("ld-musl") ? Kind::musl : Kind::unknown_loader,
                "has a dynamic loader that is not glibc's: " + elf.interpreter,
                "build it for a system with glibc");
    }
    std::error_code ignored;
    if (fs::exists(elf.interpreter, ignored)) return true;
    return no(Kind::not_found,
              fmt::format("wants the dynamic loader {}, which is not there", elf.interpreter),
              "install it, or run where it is there");
  }

  Closure libraries(const fs::path& path, const std::string& loader) {
    loader_ = loader;
    Closure closure = libraries_of(path, loader_, preload_list(library_));
    for (const std::string& line : closure.complaints) {
      const bool version = line.find("version `GLIBC") != std::string::npos;
      report_.find(version ? Kind::old_glibc : Kind::loader, error, line,
                   version
                       ? fmt::format("the library needs glibc {} or newer: run on a newer system",
                                     kOldestGlibc)
                       : "");
    }
    for (const auto& [name, file] : closure.libraries) {
      if (file.empty()) missing(name, path, error);
    }
    return closure;
  }

  void missing(const std::string& name, const fs::path& of, diagnose::Severity severity) {
    report_.find(Kind::not_found, severity, of.string() + " wants " + name + ", which is not found",
                 "add its folder to LD_LIBRARY_PATH");
  }

  // Returns nullopt if it is no ELF file, or can't be read, which is a finding.
  std::optional<Elf> elf_of(const std::string& path) {
    try {
      return read_elf(path);
    } catch (const read::BadInput& e) {
      report_.find(Kind::unreadable, warning, e.what(), "");
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

  // Finds a CUDA runtime or an NCCL that is linked in.
  void linked_in(const std::string& path, const Elf& elf, bool program) {
    const auto needs = [&](std::string_view prefix) {
      return std::ranges::any_of(elf.needed,
                                 [&](const std::string& n) { return n.starts_with(prefix); });
    };
    const bool runtime_inside =
        elf.hidden.contains("cudaMemcpyAsync") || elf.hidden.contains("cudaMemcpy") ||
        (!needs("libcudart.so") && elf.kernels && !elf.wants.contains("__cudaRegisterFatBinary"));
    if (runtime_inside && !diagnose::in_force(env_, Setting::driver) &&
        !elf.wants.contains("cudaMemcpyAsync") && !elf.defines.contains("cudaMemcpyAsync")) {
      report_.find(
          Kind::static_cudart, warning,
          path + " has the CUDA runtime linked in (nvcc's default): its copies are not counted",
          "set TPROF_DRIVER=1, or link it with nvcc -cudart shared");
    }
    const bool exported = elf.defines.contains("ncclAllGather");
    if (!exported && !needs("libnccl.so") &&
        (elf.hidden.contains("ncclAllGather") || elf.nccl_text)) {
      report_.find(Kind::static_nccl, warning,
                   path + " has NCCL linked in: its collectives are not counted",
                   "link it with libnccl.so");
    }
    if (exported && program) {
      report_.find(Kind::interposer, warning,
                   path +
                       " exports NCCL's functions itself, before the library's: its "
                       "collectives are not counted",
                   "link it with libnccl.so");
    }
  }

  void python(const Program& interpreter) {
    const Python p = ask_python(interpreter.path);
    if (p.version.empty()) return report_.fact("Python", "did not answer");
    report_.fact("Python", p.version + "; what it imports is known only when it runs");
    for (const auto& [name, folder] : p.packages) {
      if (name != "nvidia") report_.fact(name, folder.string());
    }
    if (p.packages.contains("torch")) pytorch(p);
    if (p.packages.contains("vllm") && !diagnose::in_force(env_, Setting::dlsym)) {
      report_.find(
          Kind::pynccl, note,
          "vLLM takes NCCL's functions with ctypes (pynccl): collectives of its own are not "
          "counted, those of PyTorch are",
          "set TPROF_DLSYM=1");
    }
    for (const auto& [name, kind] : kMoversOfData) {
      const auto package = p.packages.find(name);
      if (package != p.packages.end()) report_.find_meaning(kind, package->second.string(), env_);
    }
    if (p.packages.contains("deep_ep")) {
      report_.find(Kind::deep_ep, note,
                   "DeepEP moves data between GPUs from inside its kernels, which no call shows",
                   "treat it as not counted");
    }
  }

  // Looks at the libraries that PyTorch was linked to. If one is not found, takes what its wheels
  // bring.
  void pytorch(const Python& p) {
    const fs::path torch = p.packages.at("torch");
    const fs::path object = torch / "lib/libtorch_cuda.so";
    std::error_code ignored;
    if (!fs::exists(object, ignored)) {
      return report_.find(
          Kind::torch_without_cuda, warning,
          torch.string() + " is a PyTorch without CUDA: it calls neither NCCL nor the CUDA runtime",
          "install PyTorch for CUDA");
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
    std::string next =
        "if it opens them when it runs, all is well: tprof doctor DIR tells afterwards";
    if (!diagnose::in_force(env_, Setting::dlsym)) {
      next += "; if it takes their functions with dlsym (ctypes, cffi), set TPROF_DLSYM=1";
    }
    report_.find(Kind::nothing_served, note,
                 "no NCCL and no CUDA runtime is among the libraries that it is linked to", next);
  }

  const Library& library_;
  Report& report_;
  const diagnose::Variables env_ = environment();  // where the command would run
  std::string loader_;
  std::map<std::string, std::string> served_;  // function -> library
};

}  // namespace

void examine_command(const std::vector<std::string>& command, const Library& library,
                     Report& report) {
  Examination(library, report).run(command);
}

}  // namespace tprof::doctor
