"""Automatic mixed precision: operators in bfloat16 where it is fast, in float32 where it must be exact."""

from retrograd.amp.autocast_mode import autocast as autocast
from retrograd.amp.autocast_mode import custom_bwd as custom_bwd
from retrograd.amp.autocast_mode import custom_fwd as custom_fwd
from retrograd.amp.autocast_mode import is_autocast_available as is_autocast_available
from retrograd.amp.grad_scaler import GradScaler as GradScaler
