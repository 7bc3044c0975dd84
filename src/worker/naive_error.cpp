#include "worker/naive_error.hpp"

#include "worker/compare_output.hpp"

namespace syslab::worker {

std::function<std::vector<double>(const Tensors&, const std::vector<Expectation>&)> error_of(
    std::function<void(const Tensors&)> naive) {
  return [naive = std::move(naive)](const Tensors& tensors, const std::vector<Expectation>& expected) {
    naive(tensors);
    std::vector<double> errors;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      errors.push_back(compare_output(tensors.outputs[i], expected[i], tensors.stream).max_error);
    }
    return errors;
  };
}

}  // namespace syslab::worker
