#include "contract/pass.hpp"

#include <array>

#include "core/text/named.hpp"

namespace syslab {
namespace {

constexpr std::array kOneByOne{Pass::forward, Pass::backward};

}  // namespace

std::string_view to_string(Pass pass) {
  return pass == Pass::forward ? "forward" : pass == Pass::backward ? "backward" : "both";
}

Pass parse_pass(std::string_view text) {
  return find_named(std::array{Pass::forward, Pass::backward, Pass::both}, "pass", text);
}

Pass pass_from(const Params& params) { return parse_pass(params.text("pass")); }

std::span<const Pass> one_by_one(Pass pass) {
  const std::span<const Pass> all(kOneByOne);
  return pass == Pass::both ? all : all.subspan(pass == Pass::forward ? 0 : 1, 1);
}

}  // namespace syslab
