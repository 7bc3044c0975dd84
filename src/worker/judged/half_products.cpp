#include "worker/judged/half_products.hpp"

#include "core/error.hpp"
#include "core/text/printable.hpp"
#include "worker/judged/python_probe.hpp"
#include "worker/judged/walled_python.hpp"

namespace syslab::worker {
namespace {

constexpr int kHasNone = 7;                 // the exit code of a Python whose torch has no such products
constexpr std::size_t kMostOfVersion = 64;  // bytes

constexpr const char* kQuestion = R"(import sys
sys.path[:] = [place for place in sys.path if place]  # not the folder that this runs in
import torch
half = torch.ones(2, 2, dtype=torch.float16)
try:
    half @ half
except RuntimeError:
    sys.stdout.write(torch.__version__)
    sys.stdout.flush()
    sys.exit(7)
)";

std::optional<Lack> asked() {
  try {
    const PythonAnswer answer = ask_python({python_interpreter(), "-c", kQuestion}, kMostOfVersion);
    if (answer.is_cut || answer.exit.signalled || answer.exit.code != kHasNone) return std::nullopt;
    return Lack{.kind = LackKind::dtype, .of = "matmul", .name = "fp16", .torch = printable(answer.output)};
  } catch (const Error&) {  // no such interpreter
    return std::nullopt;
  }
}

}  // namespace

std::optional<Lack> lacks_half_products() {
  static const std::optional<Lack> known = asked();
  return known;
}

}  // namespace syslab::worker
