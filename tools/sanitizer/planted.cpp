// Faults on purpose: tools/sanitize believes a clean run only from a build in which each of these is reported, and in
// which `ordered`, a parallel loop without a fault, is not.
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

int sum_of(const std::vector<int>& values, bool ordered) {
  int sum = 0;
  const int size = static_cast<int>(values.size());
  if (ordered) {
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < size; ++i) sum += values[static_cast<std::size_t>(i)];
  } else {
#pragma omp parallel for shared(sum)
    for (int i = 0; i < size; ++i) sum += values[static_cast<std::size_t>(i)];
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view fault = argc > 1 ? argv[1] : "";
  std::vector<int> values(1 << 16, argc);
  volatile int* const data = values.data();
  if (fault == "race" || fault == "ordered") {
    // A loop that writes and one that reads, so that what orders them must be understood, too.
#pragma omp parallel for
    for (int i = 0; i < static_cast<int>(values.size()); ++i) values[static_cast<std::size_t>(i)] = i % 7;
    std::printf("%d\n", sum_of(values, fault == "ordered"));
  } else if (fault == "overflow") {
    std::printf("%d\n", data[values.size()]);
  } else if (fault == "signed") {
    std::printf("%d\n", INT_MAX - 1 + argc);
  } else if (fault == "leak") {
    // A hundred: the last may still be in a register or on the stack, from where it counts as reachable.
    const std::vector<int>* lost = nullptr;
    for (int i = 0; i < 100; ++i) lost = new std::vector<int>(values);
    std::printf("%d\n", lost->front());
  } else {
    return 2;
  }
  return 0;
}
