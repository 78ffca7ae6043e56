// What is not there: ranks, ends of processes, lines, calls that the library refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "diagnose/problem.h"
#include "job/jobs.h"
#include "read/folder.h"

namespace tprof::diagnose {

// Each appends what it finds.
void missing_ranks(const match::Job& job, std::vector<Problem>& found);
void missing_members(const match::Job& job, std::vector<Problem>& found);
void contested_ranks(const match::Job& job, std::vector<Problem>& found);
void other_jobs(const match::Job& job, std::vector<Problem>& found);
void assumed_job(const match::Job& job, std::vector<Problem>& found);
void not_closed(const match::Job& job, std::vector<Problem>& found);
void failed_calls(const match::Job& job, std::vector<Problem>& found);
void unfinished_calls(const match::Job& job, std::vector<Problem>& found);
void overflows(const match::Job& job, std::vector<Problem>& found);
void dropped(const match::Job& job, std::vector<Problem>& found);
void skipped_files(const std::vector<read::Skipped>& skipped, std::vector<Problem>& found);

// Every process closed, or ended as one may that is not asked to, and no finding says that counts
// are missing.
bool complete(const match::Job& job, const std::vector<Problem>& problems);

// A process without its footer: until when its counts are known, as CLOCK_REALTIME.
std::int64_t known_until_ns(const read::Process& process);
// "what rank 3 did after 2026-01-01 12:00:00.123 UTC is not known"
std::string unknown_since(const std::vector<const read::Process*>& snapshots);

}  // namespace tprof::diagnose
