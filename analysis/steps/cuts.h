// Finds where one step ends and the next begins among the calls between the gradients of both.
//
// The template is the gap that most steps have: the end of one step (norms, parameters that an
// optimizer gathers), then the beginning of the next (its batch, its forward pass). If a program
// does something else in between (a log, an evaluation, a checkpoint), the next step begins at the
// part that is most similar to the template's beginning, by edit distance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tprof::steps {

inline constexpr std::size_t kFewestSteps = 6;  // fewer repeats may be those of layers

enum class LetterOf : std::uint8_t { call, small, gradient, batch, copy };  // small: a norm, a flag

// The calls of a rank as letters: equal calls have equal letters.
struct Text {
  std::vector<std::uint32_t> letters;
  std::vector<LetterOf> kinds;
  std::vector<std::size_t> operations;  // the index of each letter's operation in the sequence

  void add(std::size_t operation, std::uint32_t letter, LetterOf kind) {
    letters.push_back(letter);
    kinds.push_back(kind);
    operations.push_back(operation);
  }
  // Returns the first letter at or after an operation.
  std::size_t at(std::size_t operation) const;
};

// The part of a text between a step's last gradient and the next step's first.
struct Gap {
  std::size_t from = 0;
  std::size_t to = 0;
  std::size_t end = 0;  // of the step after it
  std::size_t cut = 0;  // where that step begins; in the last gap: where the last step ended
};

struct Cuts {
  std::size_t usual = 0;  // the gap that is the template
  // Some steps take more batches than others, and call nothing else with them: the batches may be
  // micro-batches of a step or belong to an evaluation.
  bool uneven = false;
  bool finished = true;  // the last step
};

// Sets the cut of each gap. The first gap holds the setup, the last one follows the last step.
// `closed`: the program ran to its end.
Cuts cut(const Text& text, std::vector<Gap>& gaps, bool closed);

}  // namespace tprof::steps
