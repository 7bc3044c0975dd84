// For the few functions that kernels and the host share and that cannot be constexpr, because they call the
// mathematical library. A macro, since an attribute that only nvcc knows cannot be spelled as a function.
#pragma once

#ifdef __CUDACC__
#define SYSLAB_HOST_DEVICE __host__ __device__
#else
#define SYSLAB_HOST_DEVICE
#endif
