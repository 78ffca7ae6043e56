// Prints what `tprof diff` found: text for people, JSON for programs.
#pragma once

#include <cstddef>
#include <string>

#include "diff/compare.h"

namespace tprof::report {

// `width`: of lines of tables, where that can be done.
std::string to_text(const diff::Run& a, const diff::Run& b, const diff::Diff& diff,
                    const diff::Judgement& judgement, std::size_t width);
std::string to_json(const diff::Run& a, const diff::Run& b, const diff::Diff& diff,
                    const diff::Judgement& judgement);

// Names and figures for people.
std::string name_of(const tables::OpKind& kind);
std::string name_of(const diff::TimeChange& change);

std::string cell(const diff::Count& count);                      // "8 calls, 2.00 MiB"
std::string cell(const diff::TimeChange& change, double value);  // "1.00 ms", "2.00 GB/s"
std::string rate_of(double GBps);                                // "2.00 GB/s", "0.345 MB/s"
std::string length_of(double ns);                                // without its sign
std::string share(long double change, long double of);           // "+9.0%"
std::string change_of(const diff::CountChange& change);          // "only in B", "+100.0% calls"

// The step takes longer in B, or may do so: worth a report on B.
bool may_be_longer(const diff::Diff& diff);

// One or two sentences: what it comes to.
std::string verdict(const diff::Diff& diff);
bool changed(const diff::Diff& diff);  // a count or a time
bool same(const diff::Diff& diff);     // counts were compared, and nothing changed

}  // namespace tprof::report
