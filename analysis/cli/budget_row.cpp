// The options of `tprof budget`: a row of option_table.cpp.
#include <CLI/CLI.hpp>

#include "cli/numbers.h"
#include "cli/option_table.h"

namespace tprof::cli {
namespace {

constexpr double kMostCount = 4294967296;

}  // namespace

CommandRow budget_row(Options& o, const Option& paths, const Option& run_id,
                      const Option& attempt) {
  const auto whole = [](CLI::Option* option) { take(option, {1, kMostCount, "32", kWhole}); };
  BudgetOptions& b = o.budget;
  return {
      "budget",
      "Compares what moved in a step with what should have",
      R"(
Examples:
  tprof budget DIR --model fsdp --params 7e9 --layers 32 --dtype bf16 --reduce-dtype fp32
  tprof budget DIR --model hsdp+tp --params 9e9 --layers 80 --tokens 4096 --hidden 8192
  tprof budget DIR --write budget.json     # what a good run moves,
  tprof budget NEW --budget budget.json    # which CI compares others with
P: --params, R: --root-params, L: --layers, N: --shards, M: --micro-batches;
k: M, or 1 where only the last one reduces. For each rank and step, gathered
and reduced tensors as a whole:
  ddp          ALLREDUCE k P
  zero1 zero2  ALLREDUCE (or REDUCE) k P, ALLGATHER P
  zero3        ALLGATHER P to 2 M P, RESHARDING k P
  fsdp         ALLGATHER M (2 P - R) in M (2 L + 1) calls, and R with each more, up to 2 M P in
               M (2 L + 2), as the root may be gathered again; any of it where R is not given;
               M P in M (L + 1) with --no-reshard-after-forward;
               RESHARDING k P in k (L + 1). A root without weights of its own calls nothing:
               --root-params 0 says so, and where R is not given it may be so
  hsdp         the same, and ALLREDUCE k P / N in k (L + 1)
  tp           ALLREDUCE 2 x --tp-reductions x M L tensors of --tokens x --hidden
Bytes may be more by what shards are padded: N - 1 elements in each of 16
parameters of a layer (FSDP2 pads whole rows, for which --tolerance allows),
and by --tolerance. Norms and other small calls are apart: all-reduces of less
than 16 KiB, others of less than 64 bytes. Where less moved than it should
have, and small ones of the same type may make up what is missing, they are
taken for gradients of small parameters, and a sentence says so. A budget of a run
says how many small calls there are, and which collectives steps beside the
usual one make (evaluations, checkpoints); in its file "others": "allow" lets
there be more, and collectives that it has not.
Exit code: 0 within the budget, 1 not, be it more or less, or a file could not
be read, 2 wrong usage, nothing could be read, or nothing tells steps from
micro-batches, and it asks for --steps or --micro-batches.)",
      budget,
      {paths,
       {"--model", &b.model, "ddp, zero1, zero2, zero3, fsdp, hsdp or tp, or two such as fsdp+tp",
        "NAME"},
       {"--params", &b.params, "parameters, such as 7e9; with tp those of one of its ranks", "P",
        false,
        [](CLI::Option* option) {
          take(option, {kAboveZero, kNoMost, "7e9"});
        }},
       {"--root-params", &b.root_params,
        "of them those of FSDP's root unit, such as embeddings (default: not known)", "R", false,
        [](CLI::Option* option) {
          take(option, {0, kNoMost, "5e8"});
        }},
       {"--layers", &b.layers, "layers, each an FSDP unit beside the root (default: any)", "L",
        false, whole},
       {"--dtype", &b.dtype, "of parameters and gathers (default bf16)", "TYPE"},
       {"--reduce-dtype", &b.reduce_dtype, "of gradients (default: --dtype)", "TYPE"},
       {"--shards", &b.shards,
        "ranks that hold the parameters together (default: the communicator's that scatters)", "N",
        false, whole},
       {"--micro-batches", &b.micro_batches, "of a step (default 1, as far as that is known)", "M",
        false, whole},
       {"--accumulate", &b.accumulate,
        "gradients are reduced in the last micro-batch (no_sync) or in every one (default: every "
        "for zero2 and zero3, else no_sync)",
        "no_sync|every", false,
        [](CLI::Option* option) {
          option->check(CLI::IsMember({"no_sync", "every"}));
        }},
       {"--no-reshard-after-forward", &b.no_reshard, "parameters stay for the backward pass"},
       {"--offload", &b.offload, "shards come from the host, and gradients go there"},
       {"--tokens", &b.tokens, "of a micro-batch, for tp", "N", false, whole},
       {"--hidden", &b.hidden, "elements of an activation, for tp", "N", false, whole},
       {"--tp-reductions", &b.tp_reductions,
        "all-reduces of a layer in each pass (default 2: attention and MLP)", "N", false, whole},
       {"--budget", &b.file, "a budget of --write, or by hand (schema tprof-budget/1)", "FILE"},
       {"--write", &b.write, "writes a budget, a new file, from this run", "FILE"},
       {"--tolerance", &b.tolerance, "percent of the bytes that are no difference (default 0)",
        "PERCENT", false,
        [](CLI::Option* option) {
          take(option, {0, kNoMost, "1.5"});
        }},
       {"--steps", &b.steps, "how many the job made, where that is not known", "N", false,
        [](CLI::Option* option) {
          take(option, {1, kMostCount, "100", kWhole});
        }},
       {"--json", &o.json, "for programs (schema tprof-budget-report/1)"},
       run_id,
       attempt},
      kRanks};
}

}  // namespace tprof::cli
