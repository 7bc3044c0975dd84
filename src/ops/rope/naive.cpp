// `naive`: a position of a head at a time in fp32, pairs in a plain loop, positions on threads.
#include <algorithm>
#include <array>

#include "core/dtype.hpp"
#include "device/parallel.hpp"
#include "ops/rope/rungs.hpp"
#include "ops/storage.hpp"

namespace syslab::rope {
namespace {

constexpr std::int64_t kElementsOfATask = 1 << 14;  // some microseconds of one core
constexpr std::int64_t kElementsOfAThread = 1 << 16;

// Of a whole head.
struct Pairs {
  std::array<float, kMostHeadDim / 2> first, second;
};

template <typename T>
void read_pairs(const T* head, Layout layout, std::int64_t head_dim, Pairs& pairs) {
  const std::int64_t half = head_dim / 2;
  if (layout == Layout::interleaved) {
    for (std::int64_t i = 0; i < half; ++i) {
      pairs.first[static_cast<std::size_t>(i)] = to_float(head[2 * i]);
      pairs.second[static_cast<std::size_t>(i)] = to_float(head[2 * i + 1]);
    }
  } else {
    for (std::int64_t i = 0; i < half; ++i) {
      pairs.first[static_cast<std::size_t>(i)] = to_float(head[i]);
      pairs.second[static_cast<std::size_t>(i)] = to_float(head[half + i]);
    }
  }
}

template <typename T>
void write_pairs(const Pairs& pairs, Layout layout, std::int64_t head_dim, T* head) {
  const std::int64_t half = head_dim / 2;
  if (layout == Layout::interleaved) {
    for (std::int64_t i = 0; i < half; ++i) {
      head[2 * i] = from_float<T>(pairs.first[static_cast<std::size_t>(i)]);
      head[2 * i + 1] = from_float<T>(pairs.second[static_cast<std::size_t>(i)]);
    }
  } else {
    for (std::int64_t i = 0; i < half; ++i) {
      head[i] = from_float<T>(pairs.first[static_cast<std::size_t>(i)]);
      head[half + i] = from_float<T>(pairs.second[static_cast<std::size_t>(i)]);
    }
  }
}

void turn_pairs(const float* cos, const float* sin, float sense, std::int64_t count, Pairs& pairs) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const float x1 = pairs.first[at], x2 = pairs.second[at], c = cos[i], s = sense * sin[i];
    pairs.first[at] = c * x1 - s * x2;
    pairs.second[at] = s * x1 + c * x2;
  }
}

// One head at one position, read whole before it is written: it may be written in place in another layout.
template <typename X, typename Y>
void turn_head(const X* x, Layout from, const float* cos, const float* sin, float sense, Layout to,
               std::int64_t head_dim, Y* y) {
  Pairs pairs;
  read_pairs(x, from, head_dim, pairs);
  turn_pairs(cos, sin, sense, head_dim / 2, pairs);
  write_pairs(pairs, to, head_dim, y);
}

template <typename X, typename Y>
void turn(const Problem& p, const Args& args, Layout from, Layout to, float sense) {
  const X* x = args.x.as<X>();
  Y* y = args.y.as<Y>();
  const float* cos = args.cos.as<float>();
  const float* sin = args.sin.as<float>();
  const std::int64_t pairs = p.head_dim / 2, of_a_position = p.heads * p.head_dim;
  const std::int64_t positions = p.batch * p.seq;
  const std::int64_t of_a_task = std::max<std::int64_t>(kElementsOfATask / of_a_position, 1);
  const std::int64_t tasks = (positions + of_a_task - 1) / of_a_task;
  const std::int64_t threads = positions * of_a_position / kElementsOfAThread;
  device::parallel_for(
      tasks,
      [&](std::int64_t task, int) {
        for (std::int64_t i = task * of_a_task; i < std::min((task + 1) * of_a_task, positions); ++i) {
          const std::int64_t b = i / p.seq, t = i % p.seq;
          for (std::int64_t h = 0; h < p.heads; ++h) {
            turn_head(x + b * args.x.stride(0) + h * args.x.stride(1) + t * args.x.stride(2), from, cos + t * pairs,
                      sin + t * pairs, sense, to, p.head_dim,
                      y + b * args.y.stride(0) + h * args.y.stride(1) + t * args.y.stride(2));
          }
        }
      },
      static_cast<int>(std::clamp<std::int64_t>(threads, 1, device::thread_count())));
}

void run(const Problem& p, const Args& args, Layout from, Layout to, float sense) {
  ops::with_storage(args.x.dtype, [&]<typename X>() {
    ops::with_storage(args.y.dtype, [&]<typename Y>() { turn<X, Y>(p, args, from, to, sense); });
  });
}

void naive_forward(const Problem& p, const Args& args, ops::Workspace, device::Stream) {
  run(p, args, Layout::interleaved, p.layout, 1);
}

void naive_backward(const Problem& p, const Args& args, ops::Workspace, device::Stream) {
  run(p, args, p.layout, Layout::interleaved, -1);
}

}  // namespace

Rung naive_rung() {
  Rung rung;
  rung.name = "naive";
  rung.role = Role::naive;
  rung.teaches = "a head at a time in fp32: pairs gathered, turned in a plain loop, put where the layout wants them";
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.supports = supports_dtypes(rung, kMostHeadDim);
  rung.forward = naive_forward;
  rung.backward = naive_backward;
  return rung;
}

}  // namespace syslab::rope
