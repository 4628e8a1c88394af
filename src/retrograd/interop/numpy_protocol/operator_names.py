"""The operator of each of NumPy's ufuncs that has one, also for the functions of the array API standard."""

# NumPy's name, and the operator's if it differs.
_NAMES = """
    absolute=abs add arccos=acos arccosh=acosh arcsin=asin arcsinh=asinh arctan2=atan2 arctan=atan arctanh=atanh
    bitwise_and bitwise_count bitwise_or bitwise_xor cbrt ceil clip=clamp conjugate=conj copysign cos cosh
    deg2rad degrees=rad2deg divide=div equal=eq exp exp2 expm1 fabs=abs float_power floor floor_divide fmax fmin
    fmod frexp gcd greater=gt greater_equal=ge heaviside hypot invert=bitwise_not isfinite isinf isnan lcm ldexp
    left_shift=bitwise_left_shift less=lt less_equal=le log log10 log1p log2 logaddexp logaddexp2 logical_and
    logical_not logical_or logical_xor maximum minimum multiply=mul negative=neg nextafter not_equal=ne positive
    power=pow rad2deg radians=deg2rad reciprocal remainder right_shift=bitwise_right_shift rint=round sign=sgn
    signbit sin sinh sqrt square subtract=sub tan tanh trunc
"""
OPERATORS = {name: ours or name for name, _, ours in (word.partition("=") for word in _NAMES.split())}
