// Planes of a model's arena in a safetensors file: what a checkpoint is made of. A plane's tensors are named `prefix` +
// the parameter's name; weights stand under their own names, so that any framework reads them.
#pragma once

#include <string_view>
#include <vector>

#include "model/arena.hpp"
#include "model/weights/safetensors.hpp"

namespace syslab::model {

std::vector<FileTensor> file_tensors(const ParameterLayout& layout, std::string_view prefix, FileDType dtype);
void write_plane(SafetensorsWriter& writer, const ParameterArena& arena, Plane plane, DType dtype);
// Error(usage) unless the file has every tensor of the plane in its shape, and none of integers: a name that is
// missing with the nearest there is.
void check_plane(const SafetensorsReader& reader, const ParameterLayout& layout, std::string_view prefix);
// Tensors of any floating dtype, checked first, into the arena (of weights: and their copy).
void read_plane(const SafetensorsReader& reader, ParameterArena& arena, Plane plane, std::string_view prefix);

}  // namespace syslab::model
