// Words for what ranks called, and how long others waited for it.
#include "report/words.h"

namespace tprof::report {

using diagnose::Say;

std::span<const Words> words_of_calls() {
  static constexpr Words kWords[] = {
      {Say::late,
       "{who} came last to {last:,} of {collectives:,} collectives, {behind} behind the last but "
       "one all together ({share} of the time){across_hosts?|, of the ranks of its host}",
       "look at what it did before {latest_at}; all of them: tprof summary --by rank"},
      {Say::latest_arrival,
       "the latest: {late} late to {function}, collective {seq} of communicator {communicator}"},
      {Say::arrivals_are,
       "this is when {on_device?the devices came to it|the hosts called it: what the devices did "
       "then is not known}"},
      {Say::mismatch, "communicator {communicator} ({nranks} ranks): {what}[; {where}]",
       "look for what decides in the program whether, in which order and with what this call is "
       "made: there something depends on the rank{lines_missing?; for the operation, write the "
       "lines of these ranks (TPROF_RANKS, TPROF_QUOTA)|}"},
      {Say::part_at, "they part at collective {from}"},
      {Say::part_within, "they part at one of the collectives {from} to {to}"},
      {Say::difference, "{first?first|a} difference: collective {seq}"},
      {Say::unmatched_p2p,
       "communicator {communicator} ({nranks} ranks): {from} sent {sent} to {to} in {sends:,} "
       "calls of ncclSend, which called ncclRecv from it {receives:,} times for {received}: "
       "{function} {seq} has no other end",
       "every ncclSend needs an ncclRecv of the same count and type on the other rank, in the same "
       "order"},
      {Say::p2p_sizes,
       "communicator {communicator} ({nranks} ranks): {from} sent {sent} to {to} in {sends:,} "
       "calls of ncclSend, which called ncclRecv from it {receives:,} times for {received}",
       "every ncclSend needs an ncclRecv of the same count and type on the other rank, in the same "
       "order"},
      {Say::totals_unmatched,
       "communicator {communicator} ({nranks} ranks): {sends:,} ncclSend and {receives:,} "
       "ncclRecv: not all have an other end",
       "which ranks it is, event lines of all of them tell (TPROF_EVENTS, TPROF_RANKS)"},
      {Say::failed,
       "{who}: calls were refused or only simulated, alone or with their group ({calls})"},
      {Say::unfinished, "{who}: calls never returned ({calls})"},
      {Say::counted_names, "{n:,} {name}"},
  };
  return kWords;
}

}  // namespace tprof::report
