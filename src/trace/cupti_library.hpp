// The functions of CUPTI, looked up in the library that is there at first use.
#pragma once

#include <cupti.h>

#include <cstdint>
#include <string>

namespace syslab::trace {

struct CuptiLibrary {
  decltype(cuptiGetVersion)* version = nullptr;
  decltype(cuptiGetResultString)* result_string = nullptr;
  decltype(cuptiSubscribe)* subscribe = nullptr;
  decltype(cuptiUnsubscribe)* unsubscribe = nullptr;
  decltype(cuptiEnableCallback)* enable_callback = nullptr;
  decltype(cuptiGetGraphNodeId)* graph_node_id = nullptr;
  decltype(cuptiActivityRegisterCallbacks)* register_buffers = nullptr;
  decltype(cuptiActivityRegisterTimestampCallback)* register_clock = nullptr;
  decltype(cuptiActivityEnable)* enable = nullptr;
  decltype(cuptiActivityDisable)* disable = nullptr;
  decltype(cuptiActivityFlushAll)* flush = nullptr;
  decltype(cuptiActivityGetNextRecord)* next_record = nullptr;
  decltype(cuptiActivityGetNumDroppedRecords)* dropped_records = nullptr;
  decltype(cuptiActivityPushExternalCorrelationId)* push_id = nullptr;
  decltype(cuptiActivityPopExternalCorrelationId)* pop_id = nullptr;
  std::string why;  // it cannot be used; empty: it can

  CuptiLibrary();
};

const CuptiLibrary& cupti_library();
std::string cupti_told(const char* call, CUptiResult result);  // "cuptiSubscribe: …"
void CUPTIAPI give_cupti_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records);

}  // namespace syslab::trace
