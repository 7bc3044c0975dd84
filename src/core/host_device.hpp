// For the few functions that kernels and host share and that cannot be constexpr because they call the math library. A
// macro, since only nvcc knows the attributes.
#pragma once

#ifdef __CUDACC__
#define SYSLAB_HOST_DEVICE __host__ __device__
#else
#define SYSLAB_HOST_DEVICE
#endif
