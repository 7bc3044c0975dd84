#include "core/rank_error.hpp"

#include <array>
#include <utility>

namespace syslab {
namespace {

constexpr std::array<std::pair<Fault, std::string_view>, 8> kWords{{{Fault::own, "own"},
                                                                    {Fault::peer, "peer"},
                                                                    {Fault::late, "late"},
                                                                    {Fault::rendezvous, "rendezvous"},
                                                                    {Fault::mismatch, "mismatch"},
                                                                    {Fault::numeric, "numeric"},
                                                                    {Fault::environment, "environment"},
                                                                    {Fault::awaited, "awaited"}}};

}  // namespace

std::string_view to_string(Fault fault) {
  for (const auto& [one, word] : kWords) {
    if (one == fault) return word;
  }
  return "own";
}

std::optional<Fault> fault_of_word(std::string_view word) {
  for (const auto& [one, text] : kWords) {
    if (text == word) return one;
  }
  return std::nullopt;
}

std::optional<Fault> fault_of_exit_code(int code) {
  for (const auto& [one, text] : kWords) {
    if (static_cast<int>(one) == code) return one;
  }
  return std::nullopt;
}

}  // namespace syslab
