#include "parallel/ddp/gradient_turns.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "device/event.hpp"
#include "device/stream.hpp"

namespace syslab::parallel {

GradientTurns::GradientTurns(comm::Communicator& ranks, const GradientPieces& pieces, const BucketSchedule& schedule)
    : ranks_(ranks), pieces_(pieces), schedule_(schedule), unused_(static_cast<std::size_t>(pieces.size()), 0) {}

std::string GradientTurns::names(int begin, int end) const {
  constexpr int kMost = 8;
  std::string text;
  for (int piece = begin; piece < std::min(end, begin + kMost); ++piece) {
    text += fmt::format("{}'{}'", piece == begin ? "" : ", ", pieces_[piece].name);
  }
  if (end - begin > kMost) text += fmt::format(" and {} more", end - begin - kMost);
  return text;
}

void GradientTurns::refuse(const std::string& why) {
  open_ = false;
  ranks_.abort(why);
  throw Error(ErrorKind::usage, why);
}

void GradientTurns::begin() {
  if (open_) refuse("a step of gradients begins before the one before it was finished: finish() was not called");
  open_ = true;
  next_ = next_bucket_ = 0;
  std::ranges::fill(unused_, char{0});
}

void GradientTurns::unused(int piece) {
  if (!open_) refuse("a gradient is declared unused outside of a step: call begin() first");
  if (piece < next_ || piece >= pieces_.size()) {
    refuse(fmt::format("{} is declared unused after its turn has passed, or is none of the {} gradients",
                       piece >= 0 && piece < pieces_.size() ? names(piece, piece + 1) : fmt::format("piece {}", piece),
                       pieces_.size()));
  }
  unused_[static_cast<std::size_t>(piece)] = 1;
  skip_unused();
}

void GradientTurns::take(int piece) {
  if (!open_) refuse("a gradient is final outside of a step: call begin() first");
  if (piece < 0 || piece >= pieces_.size()) {
    refuse(fmt::format("piece {} is final, and there are {} gradients", piece, pieces_.size()));
  }
  if (piece < next_) {
    refuse(fmt::format("{} is final twice in one step{}", names(piece, piece + 1),
                       unused_[static_cast<std::size_t>(piece)] != 0 ? ", and was declared unused" : ""));
  }
  if (piece > next_) {
    refuse(
        fmt::format("{} is final before {}: gradients become final in the order in which they lie in the arena, on "
                    "every rank; those that a step does not use are declared by unused()",
                    names(piece, piece + 1), names(next_, piece)));
  }
  ++next_;
  skip_unused();
}

void GradientTurns::skip_unused() {
  while (next_ < pieces_.size() && unused_[static_cast<std::size_t>(next_)] != 0) ++next_;
}

std::optional<int> GradientTurns::next_bucket() {
  if (next_bucket_ == schedule_.size() || schedule_.end(next_bucket_) > next_) return std::nullopt;
  return next_bucket_++;
}

void GradientTurns::finish() {
  if (!open_) refuse("a step of gradients is finished that was not begun: call begin() first");
  if (next_ < pieces_.size()) {
    refuse(fmt::format("no gradient of {} in this step: a parameter that a step does not use is declared by unused()",
                       names(next_, pieces_.size())));
  }
  open_ = false;
}

void GradientTurns::leave(device::Stream communication, device::Stream compute) noexcept {
  try {
    if (open_ && ranks_.size() > 1) {
      ranks_.abort(fmt::format("a step was left before its gradients {}", names(next_, pieces_.size())));
    }
    device::await_queue(communication);
    device::await_queue(compute);
    if (compute.kind != device::Kind::cuda) return;
    device::Event behind(device::place_of(communication));
    behind.record(communication);
    behind.before(compute);
  } catch (...) {  // a lost device uses nothing
  }
}

}  // namespace syslab::parallel
