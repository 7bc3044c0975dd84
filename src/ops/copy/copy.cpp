#include "ops/copy/copy.hpp"

#include <fmt/format.h>

#include <vector>

#include "core/text/named.hpp"
#include "ops/copy/rungs.hpp"

namespace syslab::copy {

std::string to_string(const Problem& problem) {
  return fmt::format("elements={} dtype={}", problem.elements, syslab::to_string(problem.dtype));
}

double traffic_bytes(const Problem& problem) { return 2.0 * static_cast<double>(problem.bytes()); }

void validate(const Problem& problem) {
  if (problem.elements < 1) {
    throw Error(ErrorKind::usage, fmt::format("a copy needs elements ≥ 1, found {}", to_string(problem)));
  }
}

namespace {

void expect_contiguous(std::string_view name, const ConstTensorView& view, const Problem& problem) {
  if (view.shape != Shape{problem.elements} || view.dtype != problem.dtype) {
    throw Error(ErrorKind::usage, fmt::format("{} is {} of {}, must be ({}) of {}", name, to_string(view.shape),
                                              to_string(view.dtype), problem.elements, to_string(problem.dtype)));
  }
  if (problem.elements > 1 && view.stride(0) != 1) {
    throw Error(ErrorKind::usage, fmt::format("{} has stride {}, must have 1", name, view.stride(0)));
  }
  if (view.data == nullptr) throw Error(ErrorKind::usage, fmt::format("{} has no memory", name));
}

}  // namespace

void validate(const Problem& problem, const Args& args) {
  validate(problem);
  expect_contiguous("from", args.from, problem);
  expect_contiguous("to", args.to, problem);
}

Operation operation(const Problem& problem, const Rung& rung) {
  Operation made;
  made.device = rung.device;
  made.inputs = {{"from", problem.dtype, {problem.elements}}};
  made.outputs = {{"to", problem.dtype, {problem.elements}}};
  made.call = [problem, rung](const Inputs& in, const Outputs& out, device::Stream stream) {
    rung.run(problem, {in[0], out[0]}, stream);
  };
  made.expect = [](const Inputs& in) { return std::vector<Expected>{{to_doubles(in[0]), {0.0}}}; };
  made.expect_there = expect_there(problem, rung);
  made.bytes = traffic_bytes(problem);
  return made;
}

std::span<const Rung> ladder() {
  static const std::vector<Rung> rungs = {
      loop_rung(),        memcpy_rung(),      streaming_rung(), threads_rung(), threads_streaming_rung(),
      cuda_memcpy_rung(), cuda_vectors_rung()};
  return rungs;
}

const Rung& find_rung(std::string_view name) { return find_named(ladder(), "implementation of copy", name); }

}  // namespace syslab::copy
