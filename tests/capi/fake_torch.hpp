// What a test asks of fake_torch.cpp beyond torch's own functions.
#pragma once

#include <cstdint>

#include "capi/torch/stable_abi.hpp"

namespace syslab::fake_torch {

using capi::torch::Kernel;
using capi::torch::Slot;
using capi::torch::TensorHandle;

inline constexpr std::int32_t kFloat32 = 6, kFloat16 = 5, kBfloat16 = 15, kFloat64 = 7;

// By their names in the library, with C linkage.
using KernelOf = Kernel (*)(const char* device,
                            const char* operation);  // fake_torch_kernel: null if none is registered; "aten CUDA"
using MakeText = Slot (*)(const char* text);         // fake_torch_text
using MakeOptional = Slot (*)(TensorHandle held);    // fake_torch_optional: null: of a tensor that is none
using Live = int (*)();                              // fake_torch_live: tensors and texts that somebody owns
using Refuse = void (*)(int allocation);             // fake_torch_refuse: the next but `allocation`; −1: none

}  // namespace syslab::fake_torch
