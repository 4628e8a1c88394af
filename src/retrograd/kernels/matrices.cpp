// The outlined functions of matrices.hpp, for all processors.

#include "matrices.hpp"

namespace retrograd {
OUTLINED_FUNCTIONS(template, float)
OUTLINED_FUNCTIONS(template, double)
}  // namespace retrograd
