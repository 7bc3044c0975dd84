// A model's weights, or any plane of its arena, in a safetensors file.
//
//   save_weights(arena, "small.safetensors");
//   load_weights(arena, "small.safetensors");     // also one that a framework wrote from the same model's state
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/arena.hpp"
#include "model/safetensors.hpp"

namespace syslab::model {

// Names that a file may hold beside a model's weights: moments of the optimizer, in a checkpoint.
inline constexpr std::string_view kOptimizerPrefix = "optimizer.";

// Writes all weights in `dtype` (the arena's if none is said), whole or not at all. Waits for the arena's stream.
void save_weights(const ParameterArena& arena, const std::filesystem::path& path,
                  std::optional<DType> dtype = std::nullopt, const FileMetadata& metadata = {});

// Reads all weights, of any floating dtype, into the arena (and their copy). Error(usage) before anything is written
// when the file is no safetensors file or not this model's: a tensor is missing or not the model's (both with the
// nearest names), of another shape, or of integers. Tensors under kOptimizerPrefix are passed over.
void load_weights(ParameterArena& arena, const std::filesystem::path& path);

// Parts that a checkpoint is made of. A plane's tensors are named `prefix` + the parameter's name.
std::vector<FileTensor> file_tensors(const ParameterLayout& layout, std::string_view prefix, FileDType dtype);
void write_plane(SafetensorsWriter& writer, const ParameterArena& arena, Plane plane, DType dtype);
// Error(usage) unless the file has every tensor of the plane in its shape.
void check_plane(const SafetensorsReader& reader, const ParameterLayout& layout, std::string_view prefix);
void read_plane(const SafetensorsReader& reader, ParameterArena& arena, Plane plane, std::string_view prefix);

}  // namespace syslab::model
