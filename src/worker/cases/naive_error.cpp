#include "worker/cases/naive_error.hpp"

#include "worker/cases/compare_output.hpp"

namespace syslab::worker {

std::vector<double> naive_errors(const OperationCall& naive, const Inputs& inputs, const Outputs& outputs,
                                 const std::vector<Expected>& expected, device::Stream stream) {
  naive(inputs, outputs, stream);
  std::vector<double> errors;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    errors.push_back(compare_output(outputs[i], expected[i], stream).max_error);
  }
  return errors;
}

}  // namespace syslab::worker
