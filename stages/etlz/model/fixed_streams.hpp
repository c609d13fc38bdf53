#pragma once

#include "etlz/model/plan.hpp"

namespace etwrelog::etlz {

// Streams with a fixed place; those of types and families follow in the order of their creation.
enum FixedStream : std::uint32_t {
  kStreamTable, // types and families
  kStreamParts,
  kStreamTypes,
  kStreamTypesNew,
  kStreamMasks,
  kStreamBits,
  kStreamRaw,
  kStreamPadding,
  kStreamCorrections,                     // of XPRESS token predictions
  kStreamThreadId,                        // 4 planes
  kStreamProcessId = kStreamThreadId + 4, // 4 planes
  kStreamKernelTime = kStreamProcessId + 4,
  kStreamUserTime,
  kStreamActivity,
  kStreamGuid,
  kStreamLength,
  kStreamWide,
  kStreamText, // kTextGroups streams
  kStreamStackNew = kStreamText + kTextGroups,
  kStreamStackNode,
  kStreamFrame,
  kStreamFrameAddress,                   // 4 planes: page number, offset
  kStreamPage = kStreamFrameAddress + 4, // 6 planes
  kStreamStackId = kStreamPage + 6,      // 4 planes
  kStreamMapCount = kStreamStackId + 4,
  kStreamMapFrom,
  kStreamMapTo,
  kStreamOtherTime, // of events that stacks belong to and that are not among the recent ones
  kFixedStreams,
};

} // namespace etwrelog::etlz
