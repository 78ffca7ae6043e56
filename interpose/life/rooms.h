// The rooms' work in the life of a session: one row per room, and a column for each stage. Other
// files of life/ refer only to session/ and the writer.
#pragma once

#include "interpose/calls/memory.h"
#include "interpose/device/timing.h"
#include "interpose/life/control.h"
#include "interpose/marks/missed_calls.h"
#include "interpose/marks/ranges.h"
#include "interpose/marks/sites.h"
#include "interpose/real/resolve.h"
#include "interpose/record/allocations.h"
#include "interpose/record/communicators.h"
#include "interpose/record/graphs.h"
#include "interpose/record/phases.h"
#include "interpose/record/ring.h"
#include "interpose/session/coverage.h"
#include "interpose/session/left_rings.h"
#include "interpose/session/session.h"
#include "interpose/user/user.h"
#include "interpose/write/windows.h"

namespace tprof::life {

struct Room {
  // In the child of a fork, which has no other threads and no session yet.
  void (*forked)() = [] {};
  // Before the first session of a forked process. Expensive work is done here and not in the fork:
  // most children (a data loader's workers) never get here.
  void (*begin_anew)() = [] {};
  // The session has its files and its writer.
  void (*begin)() = [] {};
  // The session has started, and no lock is held, since a thread waiting for it may hold what CUPTI
  // or the loader needs.
  void (*settle_in)() = [] {};
  // On the writer's thread: when it wakes; when everything recorded before is written; before it
  // sleeps; and before it closes the file.
  void (*writer_wakes)() = [] {};
  void (*writer_wrote)(Output&) = [](Output&) {};
  void (*writer_rests)() = [] {};
  void (*writer_closes)() = [] {};
  // exit() or quick_exit() has called our handler.
  void (*exiting)() = [] {};
  // At every end, before and after the file is closed. May be called in a signal handler.
  void (*ends)() = [] {};
  void (*ended)() = [] {};
  // The process has not ended after all.
  void (*go_on)() = [] {};
};

inline constexpr std::uint32_t kLastLookMs = 1000;  // to read the devices' last times

inline Head& head() {
  return session::mapping().head();
}

// Sites are only in lines: without lines they are not needed.
inline void begin_sites() {
  if (head().events != EventLines::off) sites::begin(session::config().call_site);
}

// Each stage goes through the rows in order. Windows come before timing, since they decide whether
// calls are timed from the beginning. Coverage is last, since it also notes what the others have
// loaded.
inline constexpr Room kRooms[] = {
    {.forked = resolve::after_fork,
     .begin = [] { resolve::publish(head()); },
     .exiting = resolve::stop_opening},
    {.writer_wakes = left_rings::look},
    {.begin_anew = graphs::forget_all},
    {.forked = allocations::after_fork,
     .begin =
         [] {
           if (opt_in::memory()) allocations::publish(head());
         }},
    {.forked = windows::after_fork,
     .begin = windows::begin,
     .writer_rests = windows::follow,
     .ended = windows::end},
    {.forked = device::after_fork,
     .begin = [] { device::begin(session::config().timing); },
     .settle_in = device::settle_in,
     .ends = [] { device::end(kLastLookMs); },
     .go_on = device::go_on},
    {.forked = sites::after_fork, .begin = begin_sites},
    {.begin_anew =
         [] {
           comms::forget_all();
           comms::forget_phases();
         }},
    {.forked = memory::after_fork},
    {.forked = marks::after_fork},
    {.forked = user::after_fork},
    {.begin = [] { missed::publish(head()); }},
    {.forked = control::after_fork, .writer_wrote = control::follow},
    {.forked = coverage::after_fork,
     .settle_in =
         [] {
           coverage::note_environment(head());
           coverage::note_objects(head());
         },
     .writer_closes = [] { coverage::note_mapped(head()); }},
};

template <typename Turn, typename... Of>
void each(Turn Room::*turn, Of&... of) {
  for (const Room& room : kRooms) (room.*turn)(of...);
}

}  // namespace tprof::life
