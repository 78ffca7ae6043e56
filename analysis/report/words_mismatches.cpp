// Words for ranks of a communicator that did different things.
#include "report/words.h"

namespace tprof::report {

using diagnose::Say;

std::span<const Words> words_of_mismatches() {
  static constexpr Words kWords[] = {
      {Say::mismatch, "communicator {communicator} ({nranks} ranks): {what}[; {where}]",
       "look for what decides in the program whether, in which order and with what this call is "
       "made: there something depends on the rank{lines_missing?; for the operation, write the "
       "lines of these ranks (TPROF_RANKS, TPROF_QUOTA)|}"},
      {Say::part_at, "they part at collective {from}"},
      {Say::part_within, "they part at one of the collectives {from} to {to}"},
      {Say::difference, "{first?first|a} difference: collective {seq}"},
      {Say::issued,
       "{who} issued {collectives:,} {one?collective|collectives} as {others|the others} did, but "
       "not the same "
       "ones"},
      {Say::issued_others,
       "{who} issued {collectives:,}[ to {most:,}] {one?collective|collectives}, {others|the "
       "others} {theirs:,}"},
      {Say::did_not_call, "as collective {seq}, {who} did not call what {others} called"},
      {Say::counted_calls,
       "{who}: {calls:,} {function} of {dtype} {size}[ with counts that add up to {count:,}], "
       "{others|the others} {theirs:,}"},
      {Say::same_calls,
       "the same calls of the same sizes on both sides: what differs is the root, the reduction or "
       "the order"},
      {Say::differ_too, "they differ among themselves too, in {ways:,} ways: shown is {who}"},
      {Say::no_majority, "no side is the majority: either may be the wrong one"},
      {Say::operation_unknown, "which operation it is, lines do not tell: {why:;}"},
      {Say::earlier_too, "an earlier one may differ: {why:;}"},
      {Say::no_lines, "{who:rank} has no lines of it"},
      {Say::lines_exist, "lines of {who:rank} exist for its collectives {first} to {last}"},
      {Say::one_made, "{who:rank}, {seq}: {call}[, from {line}]"},
      {Say::both_made, "both sides, {seq}: {call} on {who:rank}"},
      {Say::made_no_more, "{who:rank}, {seq}: no more"},
      {Say::left_out, "{who:rank} goes on with what {other:rank} does next: it left this one out"},
      {Say::extra, "{who:rank} then does what {other:rank} does here: this one is extra"},
      {Say::swapped, "{who:rank} does these two the other way round"},
  };
  return kWords;
}

}  // namespace tprof::report
