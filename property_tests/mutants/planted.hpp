// The naive rung of an operator with a fault around its passes, named after the mutant.
#pragma once

#include "device/device.hpp"
#include "ops/rung.hpp"

namespace syslab::property {

// `naive` with forward(fault, naive, problem, args) and backward(…) in place of its passes; without a mutant of that
// fault it is the sound "twin".
template <typename Mutants, typename Fault, typename Rung, typename Forward, typename Backward>
Rung planted(const Mutants& mutants, Fault fault, const Rung& naive, Forward* forward, Backward* backward) {
  Rung rung = naive;
  rung.name = "twin";
  for (const auto& mutant : mutants) {
    if (mutant.fault == fault) rung.name = mutant.name;
  }
  const auto around = [fault, naive](auto* pass) {
    return [fault, naive, pass](const auto& problem, const auto& args, ops::Workspace, device::Stream) {
      pass(fault, naive, problem, args);
    };
  };
  rung.forward = around(forward);
  rung.backward = around(backward);
  return rung;
}

}  // namespace syslab::property
