// The operations as plain loops on the CPU; private to this folder.
#pragma once

#include "ops/framework/operations.hpp"

namespace syslab::framework::host {

void run(const ElementWise& work);
void rows(RowOperation operation, const ConstTensorView& x, const TensorView& y, std::int64_t* where);
void columns(const ConstTensorView& x, const TensorView& y);
void gather(const ConstTensorView& x, const std::int64_t* index, const TensorView& y);
void scatter(const ConstTensorView& x, const std::int64_t* index, const TensorView& y);

}  // namespace syslab::framework::host
