// Exported functions throw nothing: what their bodies throw becomes a status and the thread's last error.
#pragma once

#include <exception>
#include <new>

#include "capi/syslab.h"
#include "core/error.hpp"

namespace syslab::capi {

const char* last_error() noexcept;  // of this thread; "" if its last call did not fail
void forget_error() noexcept;
int status_of(ErrorKind kind);
int fail(int status, const char* function, const char* message) noexcept;

template <typename Body>
int guarded(const char* function, Body&& body) noexcept {
  forget_error();
  int status = SYSLAB_OK;
  try {
    body();
  } catch (const Error& error) {
    status = fail(status_of(error.kind()), function, error.what());
  } catch (const std::bad_alloc&) {
    status = fail(SYSLAB_ERROR_OUT_OF_MEMORY, function, "out of memory on the host; take a smaller problem");
  } catch (const std::exception& error) {
    status = fail(SYSLAB_ERROR_INTERNAL, function, error.what());
  } catch (...) {
    status = fail(SYSLAB_ERROR_INTERNAL, function, "an exception of unknown type was thrown");
  }
  return status;
}

}  // namespace syslab::capi
