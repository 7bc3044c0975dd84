// Packets at a rendezvous and between a lab and its agents, as if a proven peer had sent them.
#include "agents/orders.hpp"
#include "comm/rendezvous/control_coordinator.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace syslab;
  if (size == 0) return 0;
  const std::string_view bytes = fuzz::text_of(data + 1, size - 1);
  fuzz::read_or_refuse([&] {
    comm::PacketReader packet(bytes);
    agents::WorkerId worker = 0;
    switch (data[0] % 6) {
      case 0:
        agents::read_opening(bytes);
        break;
      case 1:
        agents::read_start(packet, worker);
        break;
      case 2:
        agents::read_ended(packet);
        break;
      case 3:
        agents::read_seat(packet);
        break;
      case 4:
        comm::read_progress(packet);
        break;
      default:
        comm::read_ending(packet);
        break;
    }
  });
  return 0;
}
