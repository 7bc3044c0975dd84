#include "trials/rank_training.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "core/error.hpp"
#include "trials/measured_data_parallel.hpp"
#include "trials/measured_fsdp.hpp"

namespace syslab::parallel {
namespace {

Params params_of(std::int64_t batch, const char* mode = "train", const char* precision = "fp32") {
  Params params;
  for (const Axis& one : rank_training_cases().params) params.set(one.name, one.values.front());
  params.set("model", std::string("tiny"));
  params.set("batch", batch);
  params.set("mode", std::string(mode));
  params.set("precision", std::string(precision));
  return params;
}

std::string refused(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "none";
}

TEST(RankTraining, ARankHasItsShareOfTheRowsOrNobodyHas) {
  const train::Rung& host = train::find_rung("host");
  EXPECT_EQ(rank_workload(params_of(6), host, 3).batch, 2);
  EXPECT_EQ(rank_workload(params_of(6), host, 1).batch, 6);
  const std::string words =
      "a batch of 6 rows is not divided evenly among 4 ranks: batch counts the rows of all ranks; ask for a multiple "
      "of "
      "them all, such as batch=4";
  EXPECT_EQ(refused([&] { rank_workload(params_of(6), host, 4); }), words);
  // What is said of a schedule is what a rank would say.
  Params planned = params_of(6);
  planned.set("world_size", std::int64_t{4});
  EXPECT_EQ(refused([&] { rank_training_cases().expect(planned); }), words);
  planned.set("world_size", std::int64_t{2});
  EXPECT_EQ(refused([&] { rank_training_cases().expect(planned); }), "none");
}

TEST(RankTraining, APlanRefusesForTheReasonsOfTheMeasurement) {
  const auto refusal = rank_training_cases().refusal;
  for (const train::Rung& rung : train::ladder()) {
    for (const char* mode : {"train", "forward", "forward_backward"}) {
      for (const char* precision : {"fp32", "bf16_amp", "fp64"}) {
        const Params params = params_of(2, mode, precision);
        const train::WorkloadOptions step = rank_workload(params, rung, 2);
        const std::optional<std::string> planned = refusal(params, rung.name);
        EXPECT_EQ(measured_data_parallel({.step = step}, rung, 1).refusal, planned) << rung.name << mode << precision;
        EXPECT_EQ(measured_fsdp({.step = step}, rung, 1).refusal, planned) << rung.name << mode << precision;
      }
    }
  }
  EXPECT_EQ(refusal(params_of(2), "host"), std::nullopt);
  EXPECT_EQ(refusal(params_of(2, "forward"), "host"), "gradients of several ranks meet for an update: mode=train");
}

TEST(RankTraining, ABackendIsOfTheDeviceThatARungComputesOn) {
  Params params = params_of(2);
  EXPECT_EQ(backend_of(params, device::Kind::cpu), "shm");
  EXPECT_EQ(backend_of(params, device::Kind::cuda), "nccl");
  params.set("backend", std::string("copy_engines"));
  EXPECT_EQ(backend_of(params, device::Kind::cuda), "copy_engines");
  const auto refusal = rank_training_cases().refusal;
  EXPECT_EQ(refusal(params, "host"), "the backend copy_engines joins GPUs, and host computes on the CPU");
  EXPECT_EQ(refusal_of_backend(params, "fsdp_host", device::Kind::cpu),
            "the backend copy_engines joins GPUs, and fsdp_host computes on the CPU");
  EXPECT_EQ(refusal_of_backend(params, "fsdp", device::Kind::cuda), std::nullopt);
  params.set("backend", std::string("shm"));
  EXPECT_EQ(refusal(params, "host"), std::nullopt);
  if (!train::find_rung("fused").unavailable.empty()) return;  // without CUDA it is refused for that
  EXPECT_EQ(refusal(params, "fused"), "the backend shm joins ranks of the CPU, and fused computes on a GPU");
  params.set("backend", std::string("copy_engines"));
  EXPECT_EQ(refusal(params, "fused"), std::nullopt);
}

TEST(RankTraining, GradientsOfAModelInFp64TravelAsTheyLie) {
  EXPECT_EQ(refusal_on_wire(std::nullopt, model::Precision::fp64), std::nullopt);
  EXPECT_EQ(refusal_on_wire(DType::bf16, model::Precision::bf16_amp), std::nullopt);
  const auto why = refusal_on_wire(DType::bf16, model::Precision::fp64);
  EXPECT_EQ(why,
            "a model in fp64 is what others are held against: its gradients travel as they lie, and not in bf16: take "
            "wire=own");
  const train::Rung& reference = train::find_rung("reference");
  const train::WorkloadOptions step = rank_workload(params_of(2, "train", "fp64"), reference, 2);
  EXPECT_EQ(measured_data_parallel({.step = step, .sync = {.wire = DType::bf16}}, reference, 1).refusal, why);
  EXPECT_EQ(measured_data_parallel({.step = step}, reference, 1).refusal, std::nullopt);
}

// What copy engines hold is in the forecast of a rank's memory: slots for each other rank.
TEST(RankTraining, ABackendsOwnMemoryIsForetold) {
  Params params = params_of(2);
  EXPECT_EQ(backend_bytes(params, 4), 0);
  params.set("backend", std::string("copy_engines"));
  const double of_two = backend_bytes(params, 2), more = backend_bytes(params, 3) - of_two;
  EXPECT_EQ(more, 256 << 20);
  EXPECT_EQ(backend_bytes(params, 4), of_two + 2 * more);
  EXPECT_LT(of_two - more, 8192) << "marks";
}

}  // namespace
}  // namespace syslab::parallel
