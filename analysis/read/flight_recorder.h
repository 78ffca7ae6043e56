// Reads a dump of PyTorch's Flight Recorder, which PyTorch writes when a collective timed out or
// somebody asks for one: a pickle or JSON, of formats 2.4 to 2.10. It becomes what a rank file
// would have told of the same process.
//
// - A process group is a communicator. Its name and its ranks make the id, equal on all ranks.
// - An entry is a call that returned, as NCCL's calls are asynchronous. Collectives are numbered
//   from 1 there. Those that have not ended are always among the entries, so these tell how far
//   the device came.
// - A dump may have but the newest entries, or but those that have not ended. The earlier ones are
//   a number, so ranks are compared by their entries and not by signatures.
// - PyTorch numbers sends and receives by group, and not by their two ends. Those that have not
//   ended are counted here, from 0 for each peer and direction: both ends of a message end
//   together.
// - Its name tells the rank. The host, the process and when it was written are not known.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "read/load.h"

namespace tprof::read {

// True for the names that PyTorch gives such files: nccl_trace_rank_3, …comm_lib_trace_rank_3.
bool is_called_like_a_dump(const std::filesystem::path& file);
// Judges the first bytes of a file.
bool begins_like_a_dump(std::string_view bytes);

// Throws BadInput.
Trace load_dump(const std::filesystem::path& file);

// PyTorch's last number of a group is of its collectives, or of its messages where it makes any.
// Takes out such numbers, of groups that make messages on any rank.
void leave_out_numbers_of_messages(std::vector<Trace>& traces);

}  // namespace tprof::read
