// A call must end with an Error of a kind whose text says what a reader needs.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <initializer_list>
#include <string>

#include "core/error.hpp"

namespace syslab::comm {

inline void expect_error(const std::exception_ptr& thrown, ErrorKind kind, std::initializer_list<const char*> parts) {
  if (thrown == nullptr) {
    ADD_FAILURE() << "nothing was thrown";
    return;
  }
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.kind(), kind) << text;
    for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
  }
}

template <typename Call>
void expect_error(ErrorKind kind, std::initializer_list<const char*> parts, Call call) {
  std::exception_ptr thrown;
  try {
    call();
  } catch (...) {
    thrown = std::current_exception();
  }
  expect_error(thrown, kind, parts);
}

}  // namespace syslab::comm
