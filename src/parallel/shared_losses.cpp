#include "parallel/shared_losses.hpp"

#include "device/memory.hpp"
#include "device/stream.hpp"

namespace syslab::parallel {

SharedLosses::SharedLosses(comm::Communicator& ranks, const ConstTensorView& losses, device::Stream compute,
                           device::Stream communication)
    : ranks_(ranks),
      communication_(communication),
      sums_(static_cast<std::size_t>(losses.elements()) * size_of(losses.dtype), "losses of all ranks", compute,
            device::MemoryCategory::workspace),
      awaits_(communication),
      known_(device::place_of(communication)),
      arrived_(device::place_of(communication)) {}

ConstTensorView SharedLosses::sum(const ConstTensorView& losses, device::Stream compute) {
  const TensorView sums(sums_.data(), losses.dtype, {losses.elements()});
  device::copy(sums_.data(), losses.data, sums_.bytes(), compute);
  known_.record(compute);
  known_.before(communication_);
  ranks_.all_reduce(sums, comm::Reduction::sum, {"norm", "losses"}, communication_);
  arrived_.record(communication_);
  arrived_.before(compute);
  ranks_.throw_if_failed();
  return sums;
}

}  // namespace syslab::parallel
