// A finished session as one line of JSON.
#pragma once
#include <string>

#include "../gemm.h"
#include "session.h"

namespace tcgemm::emulator {

std::string findings_json(const Session& session);
std::string reached_json(const Session& session);
std::string counts_json(const Session& session);
// The whole trace, with `head` as its first members.
std::string trace_json(const Session& session, const std::string& head);

}  // namespace tcgemm::emulator
