// alternate_ring_all_reduce: an all-reduce that forwards whole tensors around a ring, compared with the usual ring; the
// question is in README.md in this folder.
#include <fmt/format.h>

#include <memory>

#include "core/error.hpp"
#include "experiments/ddp/collective_case.hpp"
#include "parallel/ring_all_reduce.hpp"
#include "registry/registry.hpp"
#include "registry/values.hpp"

namespace syslab::experiment_alternate_ring_all_reduce {
namespace {

using parallel::Ring;
using parallel::RingAllReduce;
using registry::Need;
using registry::number;
using registry::text;

MakeAllReduce around(Ring ring) {
  return [ring](comm::Communicator& ranks, std::int64_t elements, device::Stream stream) {
    const auto made = std::make_shared<RingAllReduce>(ranks, ring, elements, DType::f32, stream);
    return [made](const TensorView& buffer, device::Stream) { made->run(buffer); };
  };
}

void run_case(worker::CaseContext& context) {
  const std::string& name = context.request().implementation;
  const MakeAllReduce instead = name == "parts" ? around(Ring::parts) : name == "whole" ? around(Ring::whole) : nullptr;
  run_collective_case(context, "shm", comm::Operation::all_reduce, context.params().integer("bytes"), instead);
}

void expect(const Params& params) {
  const std::int64_t bytes = params.integer("bytes");
  parallel::check_payload(comm::Operation::all_reduce, bytes, static_cast<int>(params.integer("world_size")));
  if (bytes % 4 != 0) {
    throw Error(ErrorKind::usage, fmt::format("{} bytes are no whole number of fp32; write {} or {}", bytes,
                                              bytes / 4 * 4, bytes / 4 * 4 + 4));
  }
}

// The buffer, and the tensor that arrives and is passed on.
double memory(const Params& params, std::string_view implementation) {
  const auto bytes = static_cast<double>(params.integer("bytes"));
  return implementation == "whole" ? 3 * bytes : implementation == "parts" ? 1.5 * bytes : bytes;
}

registry::Experiment describe() {
  return registry::experiment("alternate_ring_all_reduce")
      .title("Alternate ring all-reduce")
      .question(
          "How long does an all-reduce take in which each device forwards whole tensors around the ring, as a "
          "formula of devices, size and rate, and does it take that long beside the usual ring?")
      .problem("2026", "alternate_ring_all_reduce", 1)
      .evidence({.grid = {{"world_size", {number(2), number(4)}}, {"impl", {text("parts"), text("whole")}}}})
      .evidence({.need = Need::asked, .preset = "paper", .coarse = true})
      .evidence({.need = Need::nice, .preset = "paper"})
      .tags({"communication"})
      .protocol("cs336")
      .axis("bytes", {number(1 << 20), number(16 << 20)}, "of the tensor, fp32")
      .world_sizes({number(2), number(4), number(6)})
      .preset("smoke", {{"bytes", {number(1 << 16)}}, {"world_size", {number(2), number(3)}}})
      .preset("laptop", {{"bytes", {number(1 << 20), number(4 << 20)}}, {"world_size", {number(2), number(4)}}})
      .preset("paper", {{"bytes", {number(1 << 20), number(16 << 20), number(100 << 20)}}})
      .implementation({.name = "parts", .teaches = "2(n-1) steps of S/n bytes: reduce-scatter, then all-gather"})
      .implementation({.name = "whole", .teaches = "n-1 steps of S bytes: every tensor passes every rank"})
      .implementation({.name = "shm", .teaches = "no ring: each rank sums its part where all lie, all read it"})
      .expects(expect)
      .metric("time", "s", "median of single calls, each waited for; of the slowest rank at each (rank -1)")
      .metric("pipelined", "s", "the same for a call among 20 back to back, one wait behind them")
      .metric("payload_bytes", "B", "of the tensor, as it was reduced")
      .metric("algbw", "GB/s", "bytes over this rank's median time")
      .metric("busbw", "GB/s", "that times 2(n-1)/n, whatever the ring really sends")
      .metric("algbw_pipelined", "GB/s", "bytes over the pipelined time")
      .metric("busbw_pipelined", "GB/s", "likewise")
      .metric("bus_factor", "1", "busbw over algbw")
      .memory(memory)
      .oom_is_an_answer()
      .runs(run_case);
}
SYSLAB_EXPERIMENT(alternate_ring_all_reduce, describe);

}  // namespace
}  // namespace syslab::experiment_alternate_ring_all_reduce
