// Standard input, output and error of the tool itself.
#pragma once

namespace tprof::cli {

// A file of ours must not get the number of one of them that was closed before we were started:
// what we say would go into it. What is closed can't be read or written afterwards either, and a
// child gets it closed.
void hold_standard_files();

// The exit code of a command that has said what it had to say. Throws BadInput where standard
// output could not take it.
int said(int code);

}  // namespace tprof::cli
