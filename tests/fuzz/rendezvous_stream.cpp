// A stream of framed messages: bytes that a stranger sends behind a proof, which only the one who knows the key can
// frame.
#include "comm/rendezvous/messages.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace syslab;
  const Key key{};
  comm::FrameReader reader(key);
  // Fed in two pieces, so that frames are cut in the middle, too.
  const std::string_view bytes = fuzz::text_of(data, size);
  std::string payload;
  for (const std::string_view piece : {bytes.substr(0, size / 2), bytes.substr(size / 2)}) {
    reader.bytes() += piece;
    while (reader.take(payload) == comm::FrameReader::State::message) {
    }
  }
  return 0;
}
