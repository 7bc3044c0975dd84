// A model's weights, as a safetensors file that any framework reads.
#pragma once

#include <filesystem>

#include "model/weights/weights_file.hpp"

namespace syslab::test {

inline void save_weights(const model::ParameterArena& arena, const std::filesystem::path& path,
                         std::optional<DType> dtype = std::nullopt) {
  const DType written = dtype.value_or(arena.dtype(model::Plane::weight));
  model::SafetensorsWriter writer(path, model::file_tensors(arena.layout(), "", model::file_dtype_of(written)));
  model::write_plane(writer, arena, model::Plane::weight, written);
  writer.finish();
}

inline void load_weights(model::ParameterArena& arena, const std::filesystem::path& path) {
  model::read_plane(model::SafetensorsReader(path), arena, model::Plane::weight, "");
}

}  // namespace syslab::test
