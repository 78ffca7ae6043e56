// The rooms' parts in the life of a session: one row per room, and a column for each turn that life
// takes. No other file of life/ names a room but session/, whose state this is, and the writer.
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
  // In the child of a fork, which has no other threads yet and no session.
  void (*forked)() = [] {};
  // Before the first session of a forked process. Long work is done here and not in the fork: most
  // children (a data loader's workers) never come here.
  void (*begin_anew)() = [] {};
  // The session has its files and its writer.
  void (*begin)() = [] {};
  // The session has started, and no lock is held: a thread that waits for one may hold what CUPTI
  // or the loader needs.
  void (*settle_in)() = [] {};
  // On the writer's thread: whenever it wakes; when all that was recorded before is written; before
  // it sleeps; and before it closes the file.
  void (*writer_wakes)() = [] {};
  void (*writer_wrote)(Output&) = [](Output&) {};
  void (*writer_rests)() = [] {};
  void (*writer_closes)() = [] {};
  // exit() or quick_exit() has come to our handler.
  void (*exiting)() = [] {};
  // At every end, before the file is closed and after. A signal handler may be the caller.
  void (*ends)() = [] {};
  void (*ended)() = [] {};
  // The process has not ended after all.
  void (*go_on)() = [] {};
};

inline constexpr std::uint32_t kLastLookMs = 1000;  // for what the devices have done

inline Head& head() {
  return session::mapping().head();
}

// Sites are in lines only: without lines there is nothing to ask for.
inline void begin_sites() {
  if (head().events != EventLines::off) sites::begin(session::config().call_site);
}

// Each turn goes through the rows from the first to the last. Windows come before timing: they say
// whether calls are timed from the beginning. Coverage comes last, since it also notes what the
// others have loaded.
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
