#include "doctor/command.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "diagnose/coverage.h"
#include "doctor/loader.h"
#include "doctor/program.h"
#include "doctor/python.h"
#include "interpose/format/coverage.h"
#include "interpose/format/settings.h"
#include "read/error.h"

namespace tprof::doctor {
namespace fs = std::filesystem;

namespace {

using diagnose::Severity;

constexpr std::array<std::string_view, 10> kContainers = {
    "docker", "podman", "nerdctl", "singularity", "apptainer",
    "enroot", "ch-run", "shifter", "crun",        "runc"};
constexpr std::array<std::string_view, 9> kElsewhere = {
    "srun", "mpirun", "mpiexec", "prun", "jsrun", "aprun", "orterun", "ssh", "pdsh"};

template <typename List>
bool contains(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != std::end(list);
}

// Libraries of the vendor that bring a CUDA runtime of their own: what they copy is theirs.
bool is_vendors(std::string_view file) {
  return file.starts_with("libnccl.so") || file.starts_with("libcu") || file.starts_with("libnv") ||
         file.starts_with("libnpp");
}

bool is_wrapped(std::string_view file) {
  return file.starts_with("libnccl.so") || file.starts_with("libcudart.so");
}

class Examination {
 public:
  Examination(const Library& library, Report& report) : library_(library), report_(report) {}

  void run(const std::vector<std::string>& command) {
    const std::vector<Program> programs = programs_of(command);
    std::string path;
    for (const Program& p : programs) {
      path += fmt::format("{}{}", path.empty() ? "" : " -> ", p.path.string());
    }
    report_.fact("program", path);
    launchers(command, programs);
    for (const Program& p : programs) {
      if (p.why == "missing") {
        found("not_found", Severity::error,
              fmt::format("{}: no such program, but {} wants it", p.path.string(),
                          programs[programs.size() - 2].path.string()),
              "install it, or correct the script's first line");
        return;
      }
      if (!p.elf) continue;
      if (!can_be_preloaded(p)) return;
    }
    const Program& last = programs.back();
    const Closure closure = libraries(last.path, *last.elf);
    serve(closure);
    object(last.path, *last.elf, true);
    for (const auto& [name, file] : closure.libraries) shared_object(name, file);
    if (is_python(last.path)) python(last);
    functions();
  }

 private:
  void found(std::string kind, Severity severity, std::string text, std::string next) {
    report_.findings.push_back({.kind = std::move(kind),
                                .severity = severity,
                                .text = std::move(text),
                                .next = std::move(next)});
  }
  void known(const std::string& kind, const std::string& path) {
    const diagnose::Meaning m = diagnose::meaning_of(kind, {&env_});
    if (!m.text.empty()) found(kind, m.severity, fmt::format("{}: {}", path, m.text), m.next);
  }

  void launchers(const std::vector<std::string>& command, const std::vector<Program>& programs) {
    for (const Program& p : programs) {
      const std::string name = p.path.filename().string();
      const bool pyxis = name == "srun" && std::ranges::any_of(command, [](const std::string& a) {
                           return a.starts_with("--container-image");
                         });
      if (contains(kContainers, name) || pyxis) {
        found("container", Severity::note,
              fmt::format("{} starts the program in a container, which can't be looked into from "
                          "here",
                          name),
              fmt::format("mount the library and the output folder into it, pass LD_PRELOAD and "
                          "TPROF_OUTPUT_DIR on, and run tprof doctor inside; its glibc has to be "
                          "{} or newer",
                          newest(library_.elf.versions)));
      } else if (contains(kElsewhere, name)) {
        found("elsewhere", Severity::note,
              fmt::format("{} starts programs on other hosts; what was looked at is here", name),
              fmt::format("{} tprof doctor tells of each of them", name));
      }
      if (name == "env" && std::ranges::any_of(command, [](const std::string& a) {
            return a == "-" || a == "-i" || a == "--ignore-environment";
          })) {
        found("environment_cleared", Severity::warning,
              "env -i takes LD_PRELOAD and all settings away", "leave out -i");
      }
    }
  }

  bool can_be_preloaded(const Program& p) {
    const std::string name = p.path.string();
    const Elf& elf = *p.elf;
    if (!elf.is_64_bit || elf.machine != library_.elf.machine) {
      found("other_machine", Severity::error,
            fmt::format("{} is for {}{}, and the library for {}", name, machine_name(elf.machine),
                        elf.is_64_bit ? "" : " (32 bits)", machine_name(library_.elf.machine)),
            "use a libtprof.so that was built for it");
      return false;
    }
    secure_execution(p.path);
    if (elf.interpreter.empty()) {
      found("static_program", Severity::error,
            fmt::format("{} is linked statically: there is no dynamic loader to preload anything",
                        name),
            "link it dynamically");
      return false;
    }
    const std::string loader = fs::path(elf.interpreter).filename().string();
    if (loader.starts_with("ld-musl")) {
      found(
          "musl", Severity::error,
          fmt::format("{} is linked to musl ({}), and the library to glibc", name, elf.interpreter),
          "build it for a system with glibc");
      return false;
    }
    if (!loader.starts_with("ld-linux") && !loader.starts_with("ld64")) {
      found("unknown_loader", Severity::error,
            fmt::format("{} has a dynamic loader that is not glibc's: {}", name, elf.interpreter),
            "build it for a system with glibc");
      return false;
    }
    std::error_code error;
    if (!fs::exists(elf.interpreter, error)) {
      found(
          "not_found", Severity::error,
          fmt::format("{} wants the dynamic loader {}, which is not there", name, elf.interpreter),
          "install it, or run where it is there");
      return false;
    }
    return true;
  }

  // In secure-execution mode ld.so ignores preloads by path (ld.so(8)).
  void secure_execution(const fs::path& path) {
    struct stat st {};
    if (stat(path.c_str(), &st) != 0) return;
    const bool by_mode = (st.st_mode & (S_ISUID | S_ISGID)) != 0;
    const bool by_capability = getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
    if (!by_mode && !by_capability) return;
    found("secure_execution", Severity::error,
          fmt::format("{} {}, so its dynamic loader ignores LD_PRELOAD", path.string(),
                      by_mode ? "is setuid or setgid" : "has file capabilities"),
          "run a copy without that, or start the program that it runs without it");
  }

  Closure libraries(const fs::path& path, const Elf& elf) {
    loader_ = elf.interpreter;
    Closure closure = libraries_of(path, loader_, preload_list(library_));
    for (const std::string& line : closure.complaints) {
      const bool version = line.find("version `GLIBC") != std::string::npos;
      found(version ? "old_glibc" : "loader", Severity::error, line,
            version ? fmt::format("the library needs glibc {} or newer: run on a newer system",
                                  newest(library_.elf.versions))
                    : "");
    }
    for (const auto& [name, file] : closure.libraries) {
      if (file.empty()) missing(name, path, Severity::error);
    }
    return closure;
  }

  void missing(const std::string& name, const fs::path& of, Severity severity) {
    found("not_found", severity, fmt::format("{} wants {}, which is not found", of.string(), name),
          "add its folder to LD_LIBRARY_PATH");
  }

  // Remembers which libraries of the closure have wrapped functions.
  void serve(const Closure& closure) {
    for (const auto& [name, path] : closure.libraries) {
      if (!is_wrapped(name) || path.empty()) continue;
      try {
        const auto elf = read_elf(path);
        if (!elf) continue;
        for (const std::string& f : elf->defines) served_.try_emplace(f, path);
      } catch (const read::BadInput& e) {
        found("unreadable", Severity::warning, e.what(), "");
      }
    }
  }

  void shared_object(const std::string& name, const std::string& path) {
    if (path.empty() || name.starts_with("ld-linux") || path == library_.path.string()) return;
    if (const KnownObject* k = known_object(path); k != nullptr && !is_tool(k->note)) {
      if (k->note != Note::nccl && k->note != Note::cudart && k->note != Note::driver) {
        known(std::string(note_name(k->note)), path);
      }
      return;
    }
    if (is_vendors(name)) return;
    try {
      if (const auto elf = read_elf(path)) object(path, *elf, false);
    } catch (const read::BadInput& e) {
      found("unreadable", Severity::warning, e.what(), "");
    }
  }

  // A CUDA runtime or an NCCL that is linked in.
  void object(const fs::path& path, const Elf& elf, bool program) {
    const auto needs = [&](std::string_view prefix) {
      return std::ranges::any_of(elf.needed,
                                 [&](const std::string& n) { return n.starts_with(prefix); });
    };
    const bool kernels =
        elf.sections.contains(".nv_fatbin") || elf.sections.contains(".nvFatBinSegment");
    const bool runtime_inside =
        elf.hidden.contains("cudaMemcpyAsync") || elf.hidden.contains("cudaMemcpy") ||
        (!needs("libcudart.so") && kernels && !elf.wants.contains("__cudaRegisterFatBinary"));
    if (runtime_inside && !diagnose::in_force(env_, Setting::driver) &&
        !elf.wants.contains("cudaMemcpyAsync") && !elf.defines.contains("cudaMemcpyAsync")) {
      found("static_cudart", Severity::warning,
            fmt::format("{} has the CUDA runtime linked in (nvcc's default): its copies are not "
                        "counted",
                        path.string()),
            "set TPROF_DRIVER=1, or link it with nvcc -cudart shared");
    }
    const bool exported = elf.defines.contains("ncclAllGather");
    const bool nccl_inside =
        !exported && !needs("libnccl.so") &&
        (elf.hidden.contains("ncclAllGather") || elf.mentions("NCCL_BUFFSIZE"));
    if (nccl_inside) {
      found("static_nccl", Severity::warning,
            fmt::format("{} has NCCL linked in: its collectives are not counted", path.string()),
            "link it with libnccl.so");
    }
    if (exported && program) {
      found("interposer", Severity::warning,
            fmt::format("{} exports NCCL's functions itself, before the library's: its "
                        "collectives are not counted",
                        path.string()),
            "link it with libnccl.so");
    }
  }

  void python(const Program& interpreter) {
    const Python p = ask_python(interpreter.path);
    if (p.version.empty()) {
      report_.fact("Python", "did not answer");
      return;
    }
    report_.fact("Python", p.version + "; what it imports is known only when it runs");
    for (const auto& [name, folder] : p.packages) {
      if (name != "nvidia") report_.fact(name, folder.string());
    }
    if (const auto torch = p.packages.find("torch"); torch != p.packages.end()) {
      pytorch(torch->second, p);
    }
    if (p.packages.contains("vllm") && !diagnose::in_force(env_, Setting::dlsym)) {
      found("pynccl", Severity::note,
            "vLLM takes NCCL's functions with ctypes (pynccl): collectives of its own are not "
            "counted, those of PyTorch are",
            "set TPROF_DLSYM=1");
    }
    if (p.packages.contains("jax")) known("jax", p.packages.at("jax").string());
    if (p.packages.contains("tensorflow"))
      known("tensorflow", p.packages.at("tensorflow").string());
    if (p.packages.contains("cupy")) known("cupy", p.packages.at("cupy").string());
    if (p.packages.contains("mscclpp")) known("mscclpp", p.packages.at("mscclpp").string());
    if (p.packages.contains("deep_ep")) {
      found("deep_ep", Severity::note,
            "DeepEP moves data between GPUs from inside its kernels, which no call shows",
            "take it as not counted");
    }
    if (p.packages.contains("kvikio")) known("cufile", p.packages.at("kvikio").string());
  }

  // The libraries that PyTorch was linked to, and what its wheels bring where those are not found.
  void pytorch(const fs::path& torch, const Python& p) {
    const fs::path object = torch / "lib/libtorch_cuda.so";
    std::error_code error;
    if (!fs::exists(object, error)) {
      found("torch_without_cuda", Severity::warning,
            fmt::format("{} is a PyTorch without CUDA: it calls neither NCCL nor the CUDA runtime",
                        torch.string()),
            "install PyTorch for CUDA");
      return;
    }
    Closure closure = libraries_of(object, loader_, "");
    for (auto& [name, path] : closure.libraries) {
      if (path.empty()) path = from_wheels(p, name);
      if (path.empty() && is_wrapped(name)) missing(name, object, Severity::warning);
    }
    serve(closure);
    for (const auto& [name, path] : closure.libraries) {
      if (!path.empty() && !path.starts_with(torch.string())) shared_object(name, path);
    }
  }

  // site-packages/nvidia/*/lib: PyTorch opens these itself.
  static std::string from_wheels(const Python& p, const std::string& name) {
    const auto nvidia = p.packages.find("nvidia");
    std::error_code error;
    if (nvidia == p.packages.end()) return {};
    for (const auto& entry : fs::directory_iterator(nvidia->second, error)) {
      const fs::path file = entry.path() / "lib" / name;
      if (fs::exists(file, error)) return file.string();
    }
    return {};
  }

  void functions() {
    for (const std::string& name : library_.functions) {
      const auto s = served_.find(name);
      report_.functions.push_back({name, s == served_.end() ? "" : s->second});
    }
    if (served_.empty()) {
      found(
          "nothing_served", Severity::note,
          "no NCCL and no CUDA runtime is among the libraries that it is linked to",
          diagnose::in_force(env_, Setting::dlsym)
              ? "if it opens them when it runs, all is well: tprof doctor DIR tells afterwards"
              : "if it opens them when it runs, all is well: tprof doctor DIR tells afterwards; if "
                "it takes their functions with dlsym (ctypes, cffi), set TPROF_DLSYM=1");
    }
  }

  const Library& library_;
  Report& report_;
  const std::map<std::string, std::string> env_ = environment();  // where the command would run
  std::string loader_;
  std::map<std::string, std::string> served_;  // function -> library
};

}  // namespace

void examine_command(const std::vector<std::string>& command, const Library& library,
                     Report& report) {
  Examination(library, report).run(command);
}

}  // namespace tprof::doctor
