// The report of a job: a screen of text, or one HTML file.
#pragma once

#include <string>

#include "page/gather.h"

namespace tprof::page {

// Some 40 lines of at most 80 columns, in which sentences are whole. `next`: the command that
// writes the page.
std::string to_text(const Gathered& g, const std::string& next);
// The verdict, what to do, and what else costs time: a few lines.
std::string verdict(const Gathered& g);
std::string to_json(const Gathered& g);
std::string to_html(const Gathered& g);  // needs nothing but itself

}  // namespace tprof::page
