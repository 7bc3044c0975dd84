#include "property_tests/mutants/gemm.hpp"

namespace syslab::gemm {
namespace {

void run(Fault fault, const Problem& p, const Args& args) {
  const std::int64_t depth = fault == Fault::dropped_tail && p.k > 8 ? p.k / 8 * 8 : p.k;
  const auto a = [&](std::int64_t i, std::int64_t k) {
    const float value = args.a.as<float>()[i * args.a.stride(0) + k];
    return fault == Fault::rounded_inputs ? to_float(to_bf16(value)) : value;
  };
  for (std::int64_t i = 0; i < p.m; ++i) {
    float* row = args.c.as<float>() + i * args.c.stride(0);
    for (std::int64_t j = 0; j < p.n; ++j) {
      float sum = 0;
      for (std::int64_t k = 0; k < depth; ++k) sum += a(i, k) * args.b.as<float>()[k * args.b.stride(0) + j];
      const bool bleeds = fault == Fault::bleeding_row && i > 0 && i % 16 == 0;
      row[j] = bleeds ? sum + 1e-3F * (row - args.c.stride(0))[j] : sum;
    }
    if (fault == Fault::write_past_row && i + 1 < p.m && args.c.stride(0) > p.n) row[p.n] = 0;
  }
}

}  // namespace

std::vector<Mutant> mutants() {
  return {
      {Fault::dropped_tail, "dropped_tail", "gemm.equals_oracle"},
      {Fault::rounded_inputs, "rounded_inputs", "gemm.identity"},
      {Fault::bleeding_row, "bleeding_row", "gemm.rows_stand_alone"},
      {Fault::write_past_row, "write_past_row", "gemm.writes_nothing_outside"},
  };
}

Rung plain_with(Fault fault) {
  Rung rung;
  rung.name = "twin";
  for (const Mutant& mutant : mutants()) {
    if (mutant.fault == fault) rung.name = mutant.name;
  }
  rung.teaches = "what the laws can find";
  rung.dtypes = {DType::f32};
  rung.supports = [](const Problem& problem) -> std::optional<std::string> {
    if (problem.dtype == DType::f32) return std::nullopt;
    return "the plain twin takes fp32";
  };
  rung.workspace_bytes = [](const Problem&) -> std::size_t { return 0; };
  rung.run = [fault](const Problem& problem, const Args& args, ops::Workspace, device::Stream) {
    run(fault, problem, args);
  };
  return rung;
}

}  // namespace syslab::gemm
