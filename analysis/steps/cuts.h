// Finds where one step ends and the next begins, in what a rank calls between the gradients of
// both.
//
// The template is what most steps have there: what ends a step (norms, parameters that an optimizer
// gathers), and what begins the next one (its batch, its forward pass). Where a program does
// something else in between (a log, an evaluation, a checkpoint), the next step begins with what is
// most like the template's beginning, by edit distance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tprof::steps {

inline constexpr std::size_t kFewestSteps = 6;  // fewer repeats may be those of layers

enum class LetterOf : std::uint8_t { call, small, gradient, batch, copy };  // small: a norm, a flag

// The calls of a rank as letters: those that are alike have the same one.
struct Text {
  std::vector<std::uint32_t> letters;
  std::vector<LetterOf> kinds;
  std::vector<std::size_t> operations;  // the place of each in its sequence

  void add(std::size_t operation, std::uint32_t letter, LetterOf kind) {
    letters.push_back(letter);
    kinds.push_back(kind);
    operations.push_back(operation);
  }
  // Returns the first letter that is no earlier than an operation.
  std::size_t at(std::size_t operation) const;
};

// The part of a text between the last gradient of a step and the first of the next.
struct Gap {
  std::size_t from = 0;
  std::size_t to = 0;
  std::size_t end = 0;  // of the step behind it
  std::size_t cut = 0;  // where that step begins; of the gap behind the last step: where it ended
};

struct Cuts {
  std::size_t usual = 0;  // the gap that is the template
  // More batches come in for some than for others, and nothing else is called with them: these may
  // be micro-batches of a step, or of an evaluation.
  bool uneven = false;
  bool finished = true;  // the last step
};

// Sets the cut of each gap: the first has the setup before the first step, the last one is behind
// the last step. `closed`: the program came to its end.
Cuts cut(const Text& text, std::vector<Gap>& gaps, bool closed);

}  // namespace tprof::steps
