// Words for what makes a job slower than it could be.
#include "report/words.h"

namespace tprof::report {

using diagnose::Say;

#define SLOW_ONES "{who}[, all of host {host}]{stage?, one stage of the pipeline|}{named?,|} "
#define WITHOUT_THAT                                                                            \
  "[ in {in_steps} of {of_steps} steps][, {which}][, every {period}]: [leaving {after} aside, " \
  "]without that a step would be [{share} shorter][ ({least} to {most})]"

std::span<const Words> words_of_causes() {
  static constexpr Words kWords[] = {
      {Say::slow_gpu, SLOW_ONES "{one?computes|compute} longer than the others" WITHOUT_THAT,
       "compare clocks, power and temperature with those of the others (nvidia-smi -q -d "
       "PERFORMANCE,CLOCK); if these are alike, there is more to compute"},
      {Say::exchanges_more,
       "in all-to-alls {one?it sends and receives|they send and receive} {times} times as many "
       "bytes as the others: look at how tokens or rows are shared out among the ranks"},
      {Say::copies_in_times,
       "{one?it copies|they copy} {times} times as many bytes to the device in a step as the "
       "others: look at how batches are shared out among the ranks"},
      {Say::idle_at_end,
       "{who?{who} stands|{one?it stands|they stand}} idle before a step begins, behind the last "
       "kernel of the step before: there programs load data, write checkpoints and log"},
      {Say::idle_before_copies,
       "{once?in that step|}[in step {at}]{some?in most of these steps|}{all?in most steps|} most "
       "of that time lies before copies to the device: there programs load a batch, or make "
       "tensors on the host"},
      {Say::idle_within,
       "{once?in that step|}[in step {at}]{some?in most of these steps|}{all?in most steps|} most "
       "of that time lies between the {behind|copies to the device} and the {before|end of the "
       "step}"},
      {Say::look_there,
       "look at what the program does there: Python, {ahead?a loader that reads one batch ahead "
       "(accelerate), |}values that it reads (.item()), garbage collection; and at the host: other "
       "programs on its cores, their clock, swapping"},
      {Say::copies_out_each,
       "{one?it copies|they copy} {bytes} more from the device than the others, on the average of "
       "steps, as for a checkpoint"},
      {Say::sends_more,
       "in these steps {who} {one?moves|move} {bytes} more by NCCL: tprof summary --by step tells "
       "with which calls"},
      {Say::copies_in_more,
       "in these steps {who} {one?copies|copy} {bytes} more to the device, as for an evaluation or "
       "a longer batch"},
      {Say::copies_out_more,
       "in these steps {who} {one?copies|copy} {bytes} more from the device, as for a checkpoint"},
      {Say::more_calls,
       "in {all?all|{n:,}} of these steps most ranks make [{reads:,} more {reads?copy|copies} from "
       "the device][{and? and |}][{calls:,} more {calls?call|calls} of NCCL] than usual"},
      {Say::more_calls_before,
       "{all?all|{n:,}} of these steps come right behind one in which most ranks make [{reads:,} "
       "more {reads?copy|copies} from the device][{and? and |}][{calls:,} more {calls?call|calls} "
       "of NCCL] than usual"},
      {Say::read_rarely,
       "a host that reads a value (.item(), print, .cpu()) waits for its device and is no longer "
       "ahead of it: do so rarely, or copy with non_blocking=True and read a step later"},
      {Say::call_rarely,
       "make these calls rarely, or on fewer bytes: tprof summary --by step tells which they are"},
      {Say::save_aside,
       "if they write a checkpoint there, do so rarely, or in the background "
       "(torch.distributed.checkpoint.async_save)"},
      {Say::slow_input,
       "the {one?device|devices} of " SLOW_ONES
       "{one?begins|begin} to work later in a step than the others'" WITHOUT_THAT,
       "look at what the program does before the first kernel of a step: usually it loads or "
       "prepares data"},
      {Say::slow_cpu,
       "the {one?device|devices} of " SLOW_ONES
       "{one?stands|stand} idle longer than the others'" WITHOUT_THAT,
       "look at the host: the program's own Python code, loading of data, other programs on its "
       "cores, their clock, swapping, Python's garbage collector"},
      {Say::slow_link,
       "{bucket} of {size} takes {takes} on the [{role} ]communicator of {who}, and {others} on "
       "the {alike:,} other{alike?|s} that {alike?moves|move} as much: as quick, it would be "
       "exposed for up to {share} of a step less",
       "look at the network between these ranks: link rate, errors, the NIC that NCCL chose "
       "(NCCL_DEBUG=INFO)"},
      {Say::below_peak,
       "{bucket} of {size} on the [{role} ]communicator of {on} transfers {reaches} GB/s "
       "{between?between|within} hosts, {of_peak} of the peak: at the peak a step would be {share} "
       "shorter",
       "look at the path that NCCL chose (NCCL_DEBUG=INFO), and measure the same size and ranks "
       "with nccl-tests"},
      {Say::uneven_ranks,
       "{ranks:,} ranks take turns at holding up the others: with even work a step would be "
       "{share} shorter",
       "batches of unlike size do this (sort or pack sequences by length), and so do hosts with "
       "fewer cores than their ranks need"},
      {Say::late_prefetch,
       "{late} of the all-gathers begin only when the computation before them has ended: begun "
       "earlier, they would make a step {share} shorter",
       "prefetch them: backward_prefetch and forward_prefetch in FSDP1, "
       "set_modules_to_forward_prefetch and its twin for backward in FSDP2"},
      {Say::gathers_behind,
       "most steps make {calls:,} {calls?all-gather|all-gathers} of {bytes}{calls?| on average} "
       "behind their backward pass, where FSDP needs none: without {calls?it|them} a step would be "
       "{share} shorter",
       "look for full_tensor(), summon_full_params(), a full state_dict or all_gather in the loop: "
       "do it every N steps, or compute on the shards and reduce the result"},
      {Say::late_reductions,
       "reductions begin only when most of a step is computed: if they are of gradients, begun in "
       "the backward pass they would make it {share} shorter",
       "DDP begins early if its buckets are smaller than all gradients (bucket_cap_mb), FSDP if "
       "layers are wrapped one by one, DeepSpeed with overlap_comm"},
      {Say::exposed_gathers,
       "all-gathers of {bytes} on average are exposed: without them a step would be {share} "
       "shorter",
       "if only a metric or a log needs them, make them every N steps, or reduce on each rank "
       "first; TPROF_CALLSITE=python tells the lines that make them"},
      {Say::blocking_h2d,
       "{calls:,} {calls?copy|copies} to the device of {bytes} on average {calls?makes|make} the "
       "program wait in each step: without that it would be {share} shorter",
       "copy from pinned memory with non_blocking=True, or make the tensors on the device"},
      {Say::blocking_d2h,
       "{calls:,} {calls?copy|copies} from the device of {bytes} on average {calls?makes|make} the "
       "program wait in the middle of each step: without {calls?it|them} it would be {share} "
       "shorter",
       ".item(), print and .cpu() of a tensor do so: do them once a step, or rarely"},
      {Say::idle_devices,
       "the {one?device stands|devices of all ranks stand} idle for at least {share} of a step, as "
       "{one?its host does|their hosts do} not bring {one?it|them} work in time",
       "{loads?there is none at the beginning of a step: look at the loading of data (more "
       "workers, prefetching)|look for {reads?.item(), print and .cpu() in the loop, |}slow "
       "Python, an optimizer on the CPU; larger batches and CUDA graphs keep a device busy with "
       "fewer launches}"},
      {Say::gathered_again,
       "weights are gathered again in the backward pass: without that a step would be {share} "
       "shorter",
       "where there is memory for it, SHARD_GRAD_OP in FSDP1, reshard_after_forward=False in FSDP2 "
       "and ZeRO-2 in DeepSpeed save them, and what their hosts and copies take beside them"},
      {Say::reduced_again,
       "gradients are reduced in each of the {passes} backward passes of a step, where one is "
       "enough: without the others it would be {share} shorter",
       "no_sync(), or set_requires_gradient_sync(False) in FSDP2, until the last micro-batch; it "
       "takes memory for the gradients"},
      {Say::wide_dtype,
       "{which} {one?is|are} in float32: in bfloat16 a step would be {share} shorter",
       "{sharded?MixedPrecision(param_dtype, reduce_dtype) in FSDP1, MixedPrecisionPolicy in "
       "FSDP2|bf16_compress_hook in DDP, or tensors in bfloat16 where the program sends its own}"},
      {Say::long_steps,
       "{steps?step {which} takes far longer than the other {others:,}|{steps:,} of {of_steps:,} "
       "steps[, {which},] take far longer than the others}{host? on the hosts|}, {steps?|up to "
       "}{longest}[ in step {at}][ on {on}][, held up by {held_up_by:and},] where the usual step "
       "takes {usual}[: without that a step would be {share} shorter on average]",
       "{host?the hosts may wait there for their devices, which they ran ahead of; "
       "TPROF_TIMING=events tells how long the devices take|}{by_nobody?look at what the program "
       "does in these steps and just before them: tprof merge draws them|}[look at the host of "
       "{host_of} there: its own code, loading of data, a checkpoint, Python's garbage collector]"},
      {Say::holds_up, "{who}[ in {steps?step|steps} {which}][ in {n:,} of them]"},
      {Say::periodic_steps,
       "every {period} step, first step {first}, takes up to {longest}[, held up by "
       "{held_up_by:and},] where the usual step takes {usual}: without that a step would be "
       "{share} shorter on average",
       "usually that is a checkpoint, an evaluation or Python's garbage collector"},
      {Say::jumping_steps,
       "from step {step} on a step takes {after}, and {before} before that: without that a step "
       "would be {share} shorter on average",
       "look at what changed there: the size of batches, clocks and temperature of the GPUs, other "
       "jobs on the network"},
      {Say::drifting_steps,
       "steps get longer and longer: by {grown} ({share}) over {of_steps:,} steps"},
  };
  return kWords;
}

}  // namespace tprof::report
