// The number of ranks of a run that the check pretends to be; not Parthenon.
#pragma once
namespace parthenon { namespace Globals {
inline int nranks = 6;
} } // namespace parthenon::Globals
