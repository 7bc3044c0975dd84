// `naive`: fp32 on the threads of the host, row by row. Every loop over classes keeps kLanes independent partial
// results, so that the compiler may use vectors without changing any result. The exponential is a polynomial, because
// the library's would be called once an element.
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "ops/cross_entropy/rungs.hpp"
#include "ops/exp_of_negative.hpp"
#include "ops/host_pieces.hpp"
#include "ops/storage.hpp"

namespace syslab::cross_entropy {
namespace {

constexpr std::int64_t kLanes = 16;

struct Summary {
  float largest, log_sum;  // lse is their sum
};

template <typename T>
float largest_of(const T* row, std::int64_t classes) {
  std::array<float, kLanes> lanes;
  lanes.fill(-std::numeric_limits<float>::infinity());
  std::int64_t c = 0;
  for (; c + kLanes <= classes; c += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) {
      const float z = to_float(row[c + l]);
      lanes[static_cast<std::size_t>(l)] =
          z > lanes[static_cast<std::size_t>(l)] ? z : lanes[static_cast<std::size_t>(l)];
    }
  }
  for (; c < classes; ++c) lanes[0] = std::max(lanes[0], to_float(row[c]));
  float largest = lanes[0];
  for (const float lane : lanes) largest = std::max(largest, lane);
  return largest;
}

// A NaN in the row never becomes the largest element, but it reaches the sum.
template <typename T>
Summary summary_of(const T* row, std::int64_t classes) {
  const float largest = largest_of(row, classes);
  std::array<float, kLanes> lanes{};
  std::int64_t c = 0;
  for (; c + kLanes <= classes; c += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) {
      lanes[static_cast<std::size_t>(l)] += ops::exp_of_negative(to_float(row[c + l]) - largest);
    }
  }
  float sum = 0;
  for (; c < classes; ++c) sum += ops::exp_of_negative(to_float(row[c]) - largest);
  for (const float lane : lanes) sum += lane;
  return {largest, std::log(sum)};
}

template <typename T>
void forward_in(const Problem& problem, const ForwardArgs& args) {
  const T* logits = args.logits.as<T>();
  float* losses = args.row_loss.as<float>();
  ops::for_pieces(problem.rows, ops::rows_of_a_piece(problem.classes), problem.classes,
                  [&](std::int64_t first, std::int64_t end) {
                    for (std::int64_t i = first; i < end; ++i) {
                      const T* row = logits + i * args.logits.stride(0);
                      const Summary summary = summary_of(row, problem.classes);
                      const std::int64_t target = args.targets[i];
                      args.lse.as<float>()[i] = summary.largest + summary.log_sum;
                      losses[i] = target >= 0 && target < problem.classes
                                      ? summary.log_sum - (to_float(row[target]) - summary.largest)
                                      : std::numeric_limits<float>::quiet_NaN();
                    }
                  });
  double total = 0;
  for (std::int64_t i = 0; i < problem.rows; ++i) total += losses[i];
  args.loss.as<float>()[0] = static_cast<float>(total / static_cast<double>(problem.rows));
}

template <typename T>
void backward_in(const Problem& problem, const BackwardArgs& args) {
  const T* logits = args.logits.as<T>();
  T* gradients = args.dlogits.as<T>();
  const float scale = args.scale.data == nullptr ? 1.0F : args.scale.as<float>()[0];
  const float share = scale / static_cast<float>(problem.rows);
  ops::for_pieces(
      problem.rows, ops::rows_of_a_piece(problem.classes), problem.classes, [&](std::int64_t first, std::int64_t end) {
        for (std::int64_t i = first; i < end; ++i) {
          const T* row = logits + i * args.logits.stride(0);
          T* gradient = gradients + i * args.dlogits.stride(0);
          const std::int64_t target = args.targets[i];
          const bool in_range = target >= 0 && target < problem.classes;
          const float lse = in_range ? args.lse.as<float>()[i] : std::numeric_limits<float>::quiet_NaN();
          // Before the loop, because the gradient may overwrite the logits.
          const float at_target = in_range ? ops::exp_of_negative(to_float(row[target]) - lse) - 1.0F : 0.0F;
          for (std::int64_t c = 0; c < problem.classes; ++c) {
            gradient[c] = from_float<T>(ops::exp_of_negative(to_float(row[c]) - lse) * share);
          }
          if (in_range) gradient[target] = from_float<T>(at_target * share);
        }
      });
}

}  // namespace

Rung naive_rung() {
  Rung rung;
  rung.name = "naive";
  rung.role = Role::naive;
  rung.teaches = "a row at a time in fp32: largest, sum of exponentials, logarithm, and again for the gradient";
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.supports = supports_dtypes(rung);
  rung.workspace_bytes = [](const Problem&, Pass) -> std::size_t { return 0; };
  rung.forward = [](const Problem& problem, const ForwardArgs& args, ops::Workspace, device::Stream) {
    ops::with_storage(problem.dtype, [&]<typename T>() { forward_in<T>(problem, args); });
  };
  rung.backward = [](const Problem& problem, const BackwardArgs& args, ops::Workspace, device::Stream) {
    ops::with_storage(problem.dtype, [&]<typename T>() { backward_in<T>(problem, args); });
  };
  rung.forward_backward = [passes = rung](const Problem& problem, const ForwardBackwardArgs& args,
                                          ops::Workspace workspace, device::Stream stream) {
    one_after_the_other(passes, problem, args, workspace, stream);
  };
  return rung;
}

}  // namespace syslab::cross_entropy
