#include "model/weights/weights_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/text/text.hpp"

namespace syslab::model {
namespace {

constexpr std::int64_t kInHostMemory = std::int64_t{1} << 22;  // elements in host memory at a time

[[noreturn]] void refuse(const SafetensorsReader& reader, const std::string& why) {
  throw Error(ErrorKind::usage, fmt::format("'{}' is not of this model: {}", reader.path().string(), why));
}

}  // namespace

std::vector<FileTensor> file_tensors(const ParameterLayout& layout, std::string_view prefix, FileDType dtype) {
  std::vector<FileTensor> tensors;
  for (const ParameterInfo& info : layout.infos()) {
    tensors.push_back({.name = std::string(prefix) + info.name, .dtype = dtype, .shape = info.shape.to_vector()});
  }
  return tensors;
}

void write_plane(SafetensorsWriter& writer, const ParameterArena& arena, Plane plane, DType dtype) {
  std::vector<std::byte> piece;
  for (int index = 0; index < arena.layout().size(); ++index) {
    const std::int64_t elements = arena.layout().info(index).shape.elements();
    for (std::int64_t first = 0; first < elements; first += kInHostMemory) {
      const std::int64_t count = std::min(kInHostMemory, elements - first);
      piece.resize(static_cast<std::size_t>(count) * syslab::size_of(dtype));
      arena.read(plane, index, first, TensorView(piece.data(), dtype, {count}));
      writer.write(piece);
    }
  }
}

void check_plane(const SafetensorsReader& reader, const ParameterLayout& layout, std::string_view prefix) {
  for (const ParameterInfo& info : layout.infos()) {
    const std::string name = std::string(prefix) + info.name;
    const FileTensor* const found = reader.find(name);
    if (found == nullptr) {
      std::vector<std::string> names;
      for (const FileTensor& tensor : reader.tensors()) names.push_back(tensor.name);
      const std::vector<std::string> near = nearest(name, names, 1);
      refuse(reader, fmt::format("it has no '{}', which the model ({}) has{}", name, to_string(layout.config()),
                                 near.empty() ? "" : fmt::format("; nearest to it is '{}'", near.front())));
    }
    if (found->shape != info.shape.to_vector()) {
      refuse(reader, fmt::format("'{}' has the shape {} there and {} in the model ({})", name, shape_text(found->shape),
                                 to_string(info.shape), to_string(layout.config())));
    }
    if (!floating_dtype_of(found->dtype)) {
      refuse(reader, fmt::format("'{}' holds integers ({})", name, to_string(found->dtype)));
    }
  }
}

void read_plane(const SafetensorsReader& reader, ParameterArena& arena, Plane plane, std::string_view prefix) {
  check_plane(reader, arena.layout(), prefix);
  std::vector<std::byte> piece;
  for (int index = 0; index < arena.layout().size(); ++index) {
    const ParameterInfo& info = arena.layout().info(index);
    const FileTensor& tensor = *reader.find(std::string(prefix) + info.name);
    const DType dtype = *floating_dtype_of(tensor.dtype);
    const std::int64_t elements = info.shape.elements();
    for (std::int64_t first = 0; first < elements; first += kInHostMemory) {
      const std::int64_t count = std::min(kInHostMemory, elements - first);
      piece.resize(static_cast<std::size_t>(count) * syslab::size_of(dtype));
      reader.read(tensor, static_cast<std::uint64_t>(first) * syslab::size_of(dtype), piece);
      arena.write(plane, index, first, ConstTensorView(piece.data(), dtype, {count}));
    }
  }
}

}  // namespace syslab::model
