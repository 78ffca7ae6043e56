// Words for what ranks called, and how long others waited for it.
#include "report/words.h"

namespace tprof::report {

using diagnose::Say;

#define ALIKE_ENDS                                                                              \
  "every ncclSend needs an ncclRecv of the same count and type on the other rank, in the same " \
  "order"

std::span<const Words> words_of_calls() {
  static constexpr Words kWords[] = {
      {Say::late,
       "{who} came last to {last:,} of {collectives:,} collectives, {behind} behind the last but "
       "one all together{across_hosts?|, of the ranks of its host}",
       "look at what it did before {latest_at}; all of them: tprof summary --by rank"},
      {Say::latest_arrival,
       "the latest: {late} late to {function}, collective {seq} of communicator {communicator}"},
      {Say::arrivals_are,
       "this is when {on_device?the devices came to it|the hosts called it: what the devices did "
       "then is not known}"},
      {Say::unmatched_p2p,
       "communicator {communicator} ({nranks} ranks): {from} called ncclSend to {to} {sends:,} "
       "{sends?time|times}, which called ncclRecv from it {receives:,} {receives?time|times}[: "
       "{function} {alone} has no other end][: message {differs} is the first that does not fit]",
       ALIKE_ENDS},
      {Say::p2p_sizes,
       "communicator {communicator} ({nranks} ranks): message {seq} from {from} to {to} does not "
       "fit: {sent} sent, {received} to be received[; {pairs:,} pairs of ranks have one such][, "
       "{odd} in each]",
       ALIKE_ENDS},
      {Say::sizes_differ_too,
       "message {seq} from {from} to {to}: {sent} sent, {received} to be received"},
      {Say::end_of_message,
       "{who} called {function} {seq} {send?to|from} {other} of {bytes} at {at}[, in a group of "
       "{group:,}][; the one before: {before}][; the next: {then}]"},
      {Say::totals_unmatched,
       "communicator {communicator} ({nranks} ranks): {sends:,} ncclSend and {receives:,} "
       "ncclRecv: not all have an other end",
       "which ranks it is, event lines of all of them tell (TPROF_EVENTS, TPROF_RANKS)"},
      {Say::failed,
       "{who}: calls were refused or only simulated, alone or with their group ({calls})"},
      {Say::refused, "{who}: {function}[ of communicator {communicator}] returned {error}, at {at}",
       "look at NCCL's own log of that rank (NCCL_DEBUG=INFO)"},
      {Say::unfinished, "{who}: calls never returned ({calls})"},
      {Say::counted_names, "{n:,} {name}"},
      {Say::call,
       "{function} of {count:,} {dtype}{bytes?s|}[, {reduce}][, {collective?root|peer} "
       "{peer}]{captured?, captured into a graph|}[, at {at}]"},
      {Say::launch, "{function}{captured?, captured into a graph|}[, at {at}]"},
  };
  return kWords;
}

}  // namespace tprof::report
