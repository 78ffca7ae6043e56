// Reads a dump of PyTorch's Flight Recorder, which PyTorch writes when a collective times out or on
// request: a pickle or JSON, of formats 2.4 to 2.10. It becomes what a rank file of the same
// process would have said.
//
// - A process group is a communicator. Its id is made from its name and ranks, so it is equal on
//   all ranks.
// - An entry is a call that returned, as NCCL's calls are asynchronous. Collectives are numbered
//   from 1. Those that have not ended always have entries, so entries tell how far the device got.
// - A dump may have only the newest entries, or only those that have not ended. Earlier ones are
//   just counted, so ranks are compared by entries, not by signatures.
// - PyTorch numbers sends and receives by group, not by peer. Here those that have not ended are
//   counted from 0 for each peer and direction: both ends of a message end together.
// - The file's name tells the rank. The host, the process and the time of the dump are unknown.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "read/load.h"

namespace tprof::read {

// True for the names that PyTorch gives such files: nccl_trace_rank_3, …comm_lib_trace_rank_3.
bool is_called_like_a_dump(const std::filesystem::path& file);
// Judges by the first bytes of a file.
bool begins_like_a_dump(std::string_view bytes);

// Throws BadInput.
Trace load_dump(const std::filesystem::path& file);

// PyTorch's last number of a group counts collectives, or messages if the group makes any. Drops
// the numbers of groups that make messages on any rank, or in which a rank ended more than another
// has called.
void leave_out_numbers_of_messages(std::vector<Trace>& traces);

}  // namespace tprof::read
