// That bad input is refused, and that the message says what it should.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace syslab::test {

// EXPECT_TRUE(refuses([&] { validate(config); }, "context is 0")): an Error(usage) whose message holds all the parts.
template <typename... Parts>
::testing::AssertionResult refuses(const std::function<void()>& call, Parts... parts) {
  try {
    call();
  } catch (const Error& error) {
    const std::string text = error.what();
    if (error.kind() != ErrorKind::usage) return ::testing::AssertionFailure() << "not a usage error: " << text;
    for (const std::string_view part : {std::string_view(parts)...}) {
      if (text.find(part) == std::string::npos) {
        return ::testing::AssertionFailure() << "'" << part << "' is not in: " << text;
      }
    }
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << "nothing was refused";
}

}  // namespace syslab::test
