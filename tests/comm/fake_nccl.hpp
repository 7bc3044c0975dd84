// What tests/comm/fake_nccl.cpp offers beside NCCL's own functions.
#pragma once

#include <functional>

using FakeEnqueue = void (*)(void* stream, std::function<void()> work);

extern "C" {
void fake_enqueue_by(FakeEnqueue by);  // before anything is queued
int fake_open_groups();                // of this thread
}
