// distributed_communication_single_node: a collective operation among the processes of one host; the question is in
// README.md in this folder.
#include "comm/gloo/gloo.hpp"
#include "comm/nccl/communicator.hpp"
#include "core/build_info.hpp"
#include "experiments/ddp/collective_case.hpp"
#include "registry/registry.hpp"
#include "registry/values.hpp"

namespace syslab::experiment_distributed_communication_single_node {
namespace {

using registry::Need;
using registry::number;
using registry::text;

constexpr std::string_view kRaw = "nccl_raw";

parallel::MeasuredCollective::AllReduce nccl_itself(comm::Communicator& ranks, std::int64_t, device::Stream) {
  return comm::raw_all_reduce(ranks);
}

void run_case(worker::CaseContext& context) {
  const bool raw = context.request().implementation == kRaw;
  run_collective_case(context, raw ? "nccl" : context.request().implementation,
                      parallel::parse_collective(context.params().text("operation")), context.params().integer("bytes"),
                      raw ? nccl_itself : nullptr);
}

constexpr std::int64_t kMega = 1'000'000, kMebi = 1 << 20;

Values decimal() { return {number(kMega), number(10 * kMega), number(100 * kMega), number(1000 * kMega)}; }

// The hand-out's sizes, and other readings of them by people who answered it: MiB, 1000 MiB and 1 GiB.
Values decimal_and_binary() {
  Values values = decimal();
  for (const std::int64_t mebibytes : {1, 10, 100, 1000, 1024}) values.push_back(number(mebibytes * kMebi));
  return values;
}

Values every_fourth_power(int low, int high) {
  Values values;
  for (int exponent = low; exponent <= high; exponent += 2) values.emplace_back(std::int64_t{1} << exponent);
  return values;
}

void expect(const Params& params) {
  parallel::check_payload(parallel::parse_collective(params.text("operation")), params.integer("bytes"),
                          static_cast<int>(params.integer("world_size")));
}

// Buffers of one rank: the whole, and a part where operations have one.
double memory(const Params& params, std::string_view) { return 1.5 * static_cast<double>(params.integer("bytes")); }

std::vector<registry::Metric> metrics() {
  return {{"time", "s", "median of single calls, each waited for; of the slowest rank at each (rank -1)"},
          {"pipelined", "s", "the same for a call among 20 back to back, one wait behind them"},
          {"payload_bytes", "B", "of the larger buffer, as it was moved: whole elements, as many for each rank"},
          {"algbw", "GB/s", "bytes over this rank's median time"},
          {"busbw", "GB/s",
           "that times 2(n-1)/n for all_reduce, (n-1)/n for reduce_scatter and all_gather, 1 for broadcast "
           "(nccl-tests, doc/PERFORMANCE.md): what a rank's link carries"},
          {"algbw_pipelined", "GB/s", "bytes over the pipelined time"},
          {"busbw_pipelined", "GB/s", "likewise"},
          {"bus_factor", "1", "busbw over algbw"}};
}

std::vector<registry::Evidence> evidence() {
  return {
      {.grid = {{"world_size", {number(2)}}, {"impl", {text("nccl")}}}},
      {.handout = "2025", .grid = {{"world_size", {number(2)}}, {"device", {text("cpu")}}, {"impl", {text("gloo")}}}},
      {.need = Need::asked, .grid = {{"impl", {text("nccl")}}}},
      {.need = Need::asked, .handout = "2025", .grid = {{"device", {text("cpu")}}, {"impl", {text("gloo")}}}},
      {.handout = "2025",
       .problem = "ddp_bucketed_benchmarking",
       .parts = {"b"},
       .grid = {{"world_size", {number(2)}}, {"impl", {text("nccl")}}}},
      {.need = Need::nice, .preset = "paper"},
      {.preset = "laptop", .in_small = true}};
}

std::vector<registry::Implementation> implementations() {
  const std::string without_cuda = build_info().cuda ? "" : "needs CUDA, which this build has not";
  return {{.name = "shm", .teaches = "processes of one host sum in memory that all of them see"},
          {.name = "gloo",
           .teaches = "what PyTorch joins processes of the CPU by: TCP, also within one host",
           .role = Role::peer,
           .unavailable = comm::gloo_is_built() ? "" : "needs Gloo (libgloo-dev), which this build has not"},
          {.name = "nccl",
           .teaches = "a GPU a rank, joined by NVLink or PCIe",
           .unavailable = without_cuda,
           .device = DeviceKind::cuda},
          {.name = std::string(kRaw),
           .teaches = "ncclAllReduce itself: what the library takes without all that watches over it",
           .role = Role::peer,
           .unavailable = without_cuda,
           .device = DeviceKind::cuda},
          {.name = "copy_engines",
           .teaches = "large buffers carried by the GPUs' copy engines, so that multiprocessors are left to "
                      "who computes; small ones by NCCL",
           .unavailable = without_cuda,
           .device = DeviceKind::cuda}};
}

registry::Experiment describe() {
  return registry::experiment("distributed_communication_single_node")
      .title("Distributed communication on a single node")
      .question(
          "How long does an all-reduce take over size, number of processes and back end, one call at a time and back "
          "to back; what are the latency α and the bandwidth β that the times follow; and how do reduce-scatter, "
          "all-gather and broadcast compare?")
      .problem("2025", "distributed_communication_single_node", 5)
      .problem("2026", "distributed_communication_single_node", 5)
      .all_evidence(evidence())
      .tags({"communication"})
      .protocol("cs336")
      .axis("bytes", decimal(), "of the larger buffer, fp32")
      .closed_axis("operation", {text("all_reduce")}, "what is done with them",
                   {text("reduce_scatter"), text("all_gather"), text("broadcast")})
      .world_sizes({number(2), number(4), number(6)})
      .preset("smoke", {{"bytes", {number(1000), number(kMega)}},
                        {"operation", {text("all_reduce"), text("all_gather")}},
                        {"world_size", {number(2)}},
                        {"device", {text("cpu")}},
                        {"impl", {text("shm")}}})
      .preset("laptop", {{"bytes", {number(kMega / 10), number(kMega), number(10 * kMega)}},
                         {"world_size", {number(2), number(4)}},
                         {"device", {text("cpu")}},
                         {"impl", {text("shm"), text("gloo")}}})
      .preset("paper", {{"bytes", decimal_and_binary()}, {"device", {text("cpu"), text("cuda")}}})
      .preset("curve",
              {{"bytes", every_fourth_power(10, 30)},
               {"operation", {text("all_reduce"), text("reduce_scatter"), text("all_gather"), text("broadcast")}},
               {"device", {text("cpu"), text("cuda")}}})
      .implementations(implementations())
      .expects(expect)
      .skip_if("of the library itself the all-reduce alone is measured",
               [](const Params& params, std::string_view implementation) {
                 return implementation == kRaw && params.text("operation") != "all_reduce";
               })
      .metrics(metrics())
      .memory(memory)
      .oom_is_an_answer()
      .runs(run_case);
}

SYSLAB_EXPERIMENT(distributed_communication_single_node, describe);

}  // namespace
}  // namespace syslab::experiment_distributed_communication_single_node
