#include "parallel/fsdp/gather_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.hpp"

namespace syslab::parallel {
namespace {

constexpr int kNeverAgain = std::numeric_limits<int>::max();

struct Slot {
  int unit = -1;       // −1: still empty
  int last_stay = -1;  // the last stay that used this slot
};

std::vector<Stay> stays_of(std::span<const int> unit_of_read) {
  std::vector<Stay> stays;
  for (int read = 0; read < static_cast<int>(unit_of_read.size()); ++read) {
    const int unit = unit_of_read[static_cast<std::size_t>(read)];
    if (stays.empty() || stays.back().unit != unit) stays.push_back({.unit = unit, .first_read = read});
    stays.back().end_read = read + 1;
  }
  return stays;
}

int next_stay_of(std::span<const Stay> stays, int unit, int from) {
  for (int stay = from; stay < static_cast<int>(stays.size()); ++stay) {
    if (stays[static_cast<std::size_t>(stay)].unit == unit) return stay;
  }
  return kNeverAgain;
}

}  // namespace

GatherPlan::GatherPlan(std::span<const int> unit_of_read, int slots) : stays_(stays_of(unit_of_read)) {
  if (slots < 1) throw Error(ErrorKind::usage, fmt::format("{} slots for gathered weights; at least 1", slots));
  std::vector<Slot> pool(static_cast<std::size_t>(slots));
  int after = -1;
  for (int number = 0; number < size(); ++number) {
    Stay& stay = stays_[static_cast<std::size_t>(number)];
    auto slot = std::ranges::find(pool, stay.unit, &Slot::unit);
    stay.gathers = slot == pool.end();
    if (stay.gathers) {
      const auto next_use = [&](const Slot& one) {
        return one.unit < 0 ? kNeverAgain : next_stay_of(stays_, one.unit, number);
      };
      for (auto one = pool.begin(); one != pool.end(); ++one) {
        if (slots > 1 && number > 0 && one->last_stay == number - 1) continue;  // may still be in use
        if (slot == pool.end() || next_use(*one) > next_use(*slot) ||
            (next_use(*one) == next_use(*slot) && one->last_stay < slot->last_stay)) {
          slot = one;
        }
      }
      after = std::max(after, slot->last_stay);  // gathers are queued in the order of stays
      stay.after = after;
      slot->unit = stay.unit;
      order_.push_back(number);
    }
    slot->last_stay = number;
    stay.slot = static_cast<int>(slot - pool.begin());
  }
  for (int number = 0; number < size(); ++number) {
    Stay& stay = stays_[static_cast<std::size_t>(number)];
    const int next = next_stay_of(stays_, stay.unit, number + 1);
    stay.frees = next == kNeverAgain || stays_[static_cast<std::size_t>(next)].gathers;
  }
  begin_.assign(stays_.size() + 2, 0);
  for (const int number : order_) ++begin_[static_cast<std::size_t>((*this)[number].after + 2)];
  for (std::size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
}

std::span<const int> GatherPlan::gathers_after(int stay) const {
  const auto at = static_cast<std::size_t>(stay + 1);
  return std::span(order_).subspan(static_cast<std::size_t>(begin_[at]),
                                   static_cast<std::size_t>(begin_[at + 1] - begin_[at]));
}

}  // namespace syslab::parallel
