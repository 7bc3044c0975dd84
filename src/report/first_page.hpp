// What stands above a hand-in's answers: the machine, what is answered and worth how much, and what would add the rest.
#pragma once

#include <string>
#include <vector>

#include "report/answers.hpp"
#include "report/document.hpp"
#include "store/store.hpp"

namespace syslab::report {

// Evidence that the hand-out asks for and the store has not.
struct Missing {
  std::string problem;
  double points = 0;      // that it would add
  int cases = 0, of = 0;  // without a result, of those that are asked for
};

struct FirstPage {
  std::string handout;           // empty: both
  std::string standing;          // "25 of 137 points" that measurements not made are worth; empty: not known
  std::string appendix;          // the file; empty: none is written
  std::vector<Missing> missing;  // by problem
};

// The GPU, or where there is none the CPU, of all runs; empty if there are several.
std::string only_machine(const store::Store& store);
// How many results each experiment has on each GPU.
struct GpuResults {
  std::string experiment, gpu;
  std::int64_t count = 0;
};
std::vector<GpuResults> results_of_gpus(const store::Store& store);
// The GPUs that have results: those with most in `experiments` first, then those with most in all.
std::vector<std::string> gpus_of(const std::vector<GpuResults>& results, const std::vector<std::string>& experiments);

std::vector<Block> first_page(const store::Store& store, const FirstPage& page, const std::vector<Answered>& problems);

}  // namespace syslab::report
