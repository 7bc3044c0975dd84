// Weights that somebody saved.
#include <vector>

#include "model/weights/safetensors.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace syslab;
  const fuzz::InputFile file(data, size, ".safetensors");
  fuzz::read_or_refuse([&] {
    const model::SafetensorsReader reader(file.path());
    std::vector<std::byte> bytes;
    for (const model::FileTensor& tensor : reader.tensors()) {
      bytes.resize(tensor.bytes());
      reader.read(tensor, 0, bytes);
    }
  });
  return 0;
}
