#include "diagnose/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>

#include "diagnose/names.h"
#include "interpose/format/coverage.h"

namespace tprof::diagnose {
namespace {

using read::Process;

struct KindMeaning {
  std::string_view kind;
  struct {
    Severity severity;
    std::string_view text;
    std::string_view next;
    std::vector<Setting> settings{};  // with these it is seen: that is all where `next` is empty
  } meaning;
};

constexpr std::string_view kNoWayYet = "take it as not counted";
const KindMeaning kMeanings[] = {
    {"nvshmem",
     {Severity::note, "NVSHMEM moves data between GPUs from inside kernels, which no call shows",
      kNoWayYet}},
    {"cufile",
     {Severity::note, "cuFile (GPUDirect Storage) moves data between files and GPUs",
      "take reads and writes of files as not counted"}},
    {"mscclpp", {Severity::note, "MSCCL++ brings collectives of its own", kNoWayYet}},
    {"ucx", {Severity::note, "UCX moves data between GPUs and nodes", kNoWayYet}},
    {"mpi",
     {Severity::note, "a CUDA-aware MPI moves data between GPUs and nodes",
      "count its calls with an MPI profiler, such as mpiP"}},
    {"gdrcopy", {Severity::note, "GDRCopy copies to and from GPUs by plain stores", kNoWayYet}},
    {"dali", {Severity::note, "DALI copies through the driver (cuMemcpy)", "", {Setting::driver}}},
    {"jax",
     {Severity::warning,
      "XLA takes NCCL's and CUDA's functions with dlsym, so its calls pass us by",
      "",
      {Setting::dlsym, Setting::driver}}},
    {"tensorflow",
     {Severity::warning, "TensorFlow has NCCL linked in, so its collectives pass us by",
      "use a device profiler for it"}},
    {"cupy",
     {Severity::note,
      "CuPy has the CUDA runtime linked in (version 14), so its copies pass us by",
      "",
      {Setting::driver}}},
    {"second_nccl",
     {Severity::warning,
      "a further NCCL, and no wrapped call was passed on to it: it is called past the dynamic "
      "linker (dlsym, ctypes, RTLD_DEEPBIND), or not at all",
      "let all use one NCCL, linked or in the global scope",
      {Setting::dlsym}}},
    {"second_cudart",
     {Severity::note,
      "a further CUDA runtime, and no wrapped call was passed on to it: it is called past the "
      "dynamic linker, or not at all",
      "let all use one CUDA runtime",
      {Setting::dlsym}}},
    {"uncalled_cudart",
     {Severity::note,
      "none of the CUDA runtime's wrapped functions was called: what it copies, if anything, comes "
      "past the dynamic linker (dlsym, ctypes, RTLD_DEEPBIND)",
      "link with the shared CUDA runtime",
      {Setting::dlsym}}},
    {"static_cudart",
     {Severity::warning,
      "the CUDA driver is loaded, but no libcudart.so: copies go through a CUDA runtime that is "
      "linked in, or through the driver, and are not counted",
      "link with nvcc -cudart shared",
      {Setting::driver}}},
    {"dlsym",
     {Severity::warning,
      "functions of it were taken with dlsym (ctypes, cffi, CuPy, JAX): calls through such "
      "pointers are not counted",
      "",
      {Setting::dlsym}}},
    {"comm_unknown",
     {Severity::note,
      "the making of communicators was not seen (it was past the dynamic linker, or before "
      "libtprof.so could): calls on them are counted, but which they are of the other ranks' is "
      "not known, and they are not compared",
      "make them by functions that are wrapped: tprof coverage lists them",
      {Setting::dlsym}}},
    {"comm_shared",
     {Severity::note,
      "more communicators were made than there is room for (16,320 in the life of a process): "
      "calls on the others are counted by the communicator's size, and not compared",
      ""}},
    {"streams",
     {Severity::note, "calls came on more than 128 streams: the lines of the others name none",
      ""}},
    {"unsized_array",
     {Severity::note,
      "copies of boxes of it are counted as calls of 0 bytes: the format does not tell the size of "
      "an element",
      "take their bytes as not counted"}},
    {"unknown_cudart",
     {Severity::warning,
      "batches of copies and prefetches that it served are not counted: which CUDA version it is "
      "could not be told, and their arguments depend on it",
      "use NVIDIA's libcudart.so.11.0, .12 or .13"}},
    {"graph_unknown",
     {Severity::warning,
      "CUDA graphs were launched that hold, or may hold, kernels of NCCL or batches of copies put "
      "there by calls that were not seen (of the driver, or of a runtime that is linked in), or "
      "there were too many different ones: those are not counted",
      "make graphs through the shared CUDA runtime"}},
    {"graph_edited",
     {Severity::warning,
      "copies or kernels of NCCL in CUDA graphs were changed, enabled or removed by handles that "
      "are not known to us (of clones, of graphs that updated an executable, of the kernel of "
      "several calls): their counts are as before the change",
      "change the graph that was instantiated, or capture it anew"}},
    {"graph_conditional",
     {Severity::warning,
      "CUDA graphs with conditional nodes were launched: how often copies and collectives in them "
      "ran only the device knows, and they are not counted",
      "take the counts as lower bounds; or launch what is in them as graphs of their own"}},
    {"graph_device_launch",
     {Severity::warning,
      "CUDA graphs that kernels can launch: those launches are not counted, the host's are",
      "take the counts as lower bounds; or launch them from the host"}},
    {"nested",
     {Severity::note,
      "calls that it made while another call of the thread was under way (in a signal handler, or "
      "as a plugin of NCCL's) were passed on and not counted",
      "take them as not counted; or make them outside of signal handlers"}},
    {"early",
     {Severity::warning,
      "calls that it made before the dynamic linker was through with the program (in an IFUNC "
      "resolver) were passed on and not counted",
      "make them in a constructor or later"}},
    {"nsys",
     {Severity::note, "Nsight Systems is in the process: counts stay exact, times include its work",
      ""}},
    {"ncu",
     {Severity::warning, "Nsight Compute is in the process: it replays kernels, times mean nothing",
      "trace without it"}},
    {"sanitizer",
     {Severity::warning, "compute-sanitizer is in the process: times mean nothing",
      "trace without it"}},
    {"cuda_injection",
     {Severity::note,
      "CUDA_INJECTION64_PATH brings a tool into the process: times include its work", ""}},
    {"nccl_profiler",
     {Severity::note, "NCCL_PROFILER_PLUGIN brings a tool into NCCL: times include its work", ""}},
    {"interposer",
     {Severity::warning,
      "its functions of NCCL or CUDA come before those of libtprof.so, so only what it passes on "
      "is counted",
      "put libtprof.so first in LD_PRELOAD; link programs with the shared NCCL and CUDA runtime"}},
};

// "set A=1 and B=1, or <otherwise>", without what is in force.
std::string advice(const std::vector<Setting>& wanted, const std::vector<const Variables*>& all_set,
                   std::string_view otherwise) {
  std::string list;
  for (const Setting setting : wanted) {
    const bool everywhere =
        std::ranges::all_of(all_set, [&](const Variables* set) { return in_force(*set, setting); });
    if (!everywhere)
      list += fmt::format("{}{}=1", list.empty() ? "set " : " and ", info(setting).name);
  }
  if (otherwise.empty()) return list;
  return fmt::format("{}{}{}", list, list.empty() ? "" : ", or ", otherwise);
}

// One finding per kind; paths are listed, ranks said where not all have it.
void noted(const match::Job& job, const std::function<bool(std::string_view)>& wanted,
           std::vector<Problem>& found) {
  std::map<std::string, std::set<std::string>> paths;
  std::map<std::string, std::vector<const Process*>> holders;
  const auto take = [&](const Process& p, const std::vector<read::Noted>& entries) {
    for (const read::Noted& n : entries) {
      if (!wanted(n.kind)) continue;
      paths[n.kind].insert(n.path);
      auto& of_kind = holders[n.kind];
      if (of_kind.empty() || of_kind.back() != &p) of_kind.push_back(&p);
    }
  };
  for (const Process* p : job.processes) {
    if (!p->footer) continue;
    take(*p, p->footer->unseen);
    take(*p, p->footer->tools);
  }
  for (const auto& [kind, processes] : holders) {
    std::vector<const Variables*> set;
    for (const Process* p : processes) set.push_back(&p->header.config);
    const Meaning m = meaning_of(kind, set);
    if (m.text.empty()) continue;
    std::string list;
    for (const std::string& path : paths[kind]) list += (list.empty() ? "" : ", ") + path;
    const bool all = processes.size() == job.processes.size();
    found.push_back(
        {.kind = kind,
         .severity = m.severity,
         .ranks = ranks_of(processes),
         .text = fmt::format("{}{}: {}", list, all ? "" : " (" + names_of(processes) + ")", m.text),
         .next = m.next});
  }
}

// NCCL told of calls that no wrapper saw.
void missed(const match::Job& job, std::vector<Problem>& found) {
  struct Calls {
    std::uint64_t missed = 0, counted = 0;
  };
  std::map<std::string, Calls> calls;
  std::vector<const Process*> holders;
  for (const Process* p : job.processes) {
    if (!p->footer || !p->footer->missed || p->footer->missed->empty()) continue;
    holders.push_back(p);
    if (p->lane != 0) continue;  // the process's
    for (const auto& [name, n] : *p->footer->missed) calls[name].missed += n;
    for (const read::BoundFunction& f : p->footer->functions) {
      if (p->footer->missed->contains(f.name)) calls[f.name].counted += f.calls;
    }
  }
  if (holders.empty()) return;
  std::string list;
  for (const auto& [name, n] : calls) {
    list += fmt::format("{}{} of {} (counted: {})", list.empty() ? "" : ", ", n.missed, name,
                        n.counted);
  }
  const bool all = holders.size() == job.processes.size();
  const bool dlsym = std::ranges::all_of(
      holders, [](const Process* p) { return in_force(p->header.config, Setting::dlsym); });
  found.push_back(
      {.kind = "missed",
       .severity = Severity::warning,
       .ranks = ranks_of(holders),
       .text = fmt::format("NCCL's NVTX ranges tell of calls that passed libtprof.so by{}: {}",
                           all ? "" : " (" + names_of(holders) + ")", list),
       .next =
           fmt::format("{}calls through RTLD_DEEPBIND, or of an NCCL that is linked in, are not "
                       "counted",
                       dlsym ? ""
                             : "set TPROF_DLSYM=1 for functions taken with dlsym (ctypes, "
                               "cffi); ")});
}

void misspelt(const match::Job& job, std::vector<Problem>& found) {
  std::map<std::map<std::string, std::string>, std::vector<const Process*>> alike;
  for (const Process* p : job.processes) alike[p->header.config].push_back(p);
  std::set<std::string> said;
  for (const auto& [config, processes] : alike) {
    std::vector<Problem> here;
    settings(config, ranks_of(processes), here);
    for (Problem& p : here) {
      if (said.insert(p.text).second) found.push_back(std::move(p));
    }
  }
}

// Versions of one library that differ between the ranks of one job.
template <typename Version>
void versions(const match::Job& job, Version version, std::string_view what,
              std::vector<Problem>& found) {
  std::map<std::int64_t, std::vector<const Process*>> served;
  for (const Process* p : job.processes) {
    if (p->header.*version) served[*(p->header.*version)].push_back(p);
  }
  if (served.size() < 2) return;
  std::string list;
  for (const auto& [v, processes] : served) {
    list += fmt::format("{}{} on {}", list.empty() ? "" : ", ", v, names_of(processes));
  }
  found.push_back({.kind = "versions_differ",
                   .severity = Severity::warning,
                   .text = fmt::format("the ranks have different versions of {}: {}", what, list),
                   .next = "give all ranks the same libraries"});
}

// Ranks of one job that have an NCCL and call nothing of it: perhaps past us.
void no_collectives(const match::Job& job, std::vector<Problem>& found) {
  if (job.world_size.value_or(1) < 2) return;
  const bool called =
      std::ranges::any_of(job.processes, [](const Process* p) { return !p->comms.empty(); });
  const bool loaded = std::ranges::any_of(
      job.processes, [](const Process* p) { return !p->header.nccl_path.empty(); });
  if (called || !loaded) return;
  found.push_back({.kind = "no_nccl",
                   .severity = Severity::note,
                   .ranks = job.ranks,
                   .text = fmt::format("a job of {} ranks has loaded NCCL, and no call of it was "
                                       "seen",
                                       *job.world_size),
                   .next = "if it does use NCCL, that is linked in, or its functions are taken "
                           "with dlsym (ctypes.CDLL)"});
}

}  // namespace

bool in_force(const Variables& set, Setting opt_in) {
  const auto found = set.find(std::string(info(opt_in).name));
  return found != set.end() && !is_off(found->second);
}

Meaning meaning_of(std::string_view kind, const std::vector<const Variables*>& all_set) {
  const auto* found = std::ranges::find(kMeanings, kind, &KindMeaning::kind);
  if (found == std::end(kMeanings)) return {};
  const auto& m = found->meaning;
  const std::string next = advice(m.settings, all_set, m.next);
  if (next.empty() && !m.settings.empty()) return {};
  return {m.severity, m.text, next};
}

void settings(const Variables& variables, const std::vector<std::int64_t>& ranks,
              std::vector<Problem>& found) {
  for (const auto& [name, value] : variables) {
    if (is_unknown_setting(name)) {
      const std::string_view nearest = nearest_setting(name);
      found.push_back({.kind = "misspelt_setting",
                       .severity = Severity::warning,
                       .ranks = ranks,
                       .text = fmt::format("{} is not a setting, so it does nothing", name),
                       .next = nearest.empty() ? "the settings are in the README"
                                               : fmt::format("did you mean {}?", nearest)});
      continue;
    }
    const auto* setting = std::ranges::find(kSettings, std::string_view(name), &SettingInfo::name);
    if (setting == std::end(kSettings) || value.empty() || setting->accepts(value)) continue;
    found.push_back({.kind = "bad_setting",
                     .severity = Severity::warning,
                     .ranks = ranks,
                     .text = fmt::format("{}={} is not understood; in force is {}", name, value,
                                         setting->fallback),
                     .next = fmt::format("expected {}", setting->values)});
  }
}

void coverage(const match::Job& job, std::vector<Problem>& found) {
  noted(
      job, [](std::string_view) { return true; }, found);
  missed(job, found);
  misspelt(job, found);
  versions(job, &read::Header::nccl_version, "NCCL", found);
  versions(job, &read::Header::cudart_version, "the CUDA runtime", found);
  no_collectives(job, found);
}

void not_compared(const match::Job& job, std::vector<Problem>& found) {
  noted(
      job,
      [](std::string_view kind) {
        return kind == note_name(Note::comm_unknown) || kind == note_name(Note::comm_shared);
      },
      found);
}

}  // namespace tprof::diagnose
