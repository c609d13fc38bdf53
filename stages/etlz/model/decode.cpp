#include "etlz/model/decode.hpp"

namespace etwrelog::etlz {

template class ModelCore<Way::from_streams>;
template class DecoderFor<Way::from_streams>;

} // namespace etwrelog::etlz
