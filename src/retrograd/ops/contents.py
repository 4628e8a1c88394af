"""The modules of operators that are imported on first use, and what each of them adds.

For each module the names of its operators, its public functions, public names of its operators, methods of tensors.
Made by tools/contents.py from the modules: change those, then run `make stubs`.
"""

# fmt: off
CONTENTS = {
    "activation": (
        "between celu elu elu_grad glu gumbel_softmax hardshrink hardsigmoid hardswish hardswish_grad hardtanh "
        "logsigmoid mish outside prelu prelu_scale real_softsign relu6 rrelu selu softmin softshrink softsign "
        "tanhshrink threshold",
        "celu_ nn.functional.celu nn.functional.celu_ nn.functional.elu nn.functional.elu_ "
        "nn.functional.hardsigmoid nn.functional.hardswish nn.functional.hardtanh nn.functional.hardtanh_ "
        "nn.functional.leaky_relu_ nn.functional.mish nn.functional.relu6 nn.functional.relu_ nn.functional.rrelu "
        "nn.functional.rrelu_ nn.functional.selu nn.functional.selu_ nn.functional.threshold "
        "nn.functional.threshold_ relu_ rrelu_ selu_ threshold_",
        "celu hardshrink nn.functional.glu nn.functional.gumbel_softmax nn.functional.hardshrink "
        "nn.functional.logsigmoid nn.functional.prelu nn.functional.softmin nn.functional.softshrink "
        "nn.functional.softsign nn.functional.tanhshrink prelu rrelu selu threshold",
        "hardshrink prelu",
    ),
    "as_strided": (
        "as_strided as_strided_scatter copy_in_order diagonal_scatter ravel resolve_neg select_scatter "
        "slice_scatter sliding_window_view strided sum_to_size unfold_backward unfold_dim unravel_index view_as "
        "view_as_dtype",
        "broadcast_shapes",
        "as_strided as_strided_scatter diagonal_scatter ravel select_scatter slice_scatter sliding_window_view "
        "sum_to_size unfold unfold_dim unravel_index view_as",
        "as_strided as_strided_scatter diagonal_scatter ravel select_scatter slice_scatter sum_to_size unfold "
        "unfold_dim view view_as",
    ),
    "attention": (
        "attend attend_backward",
        "",
        "",
        "",
    ),
    "bessel": (
        "airy_ai_derivative i0 special.airy_ai special.bessel_j0 special.bessel_j1 special.bessel_y0 "
        "special.bessel_y1 special.i0e special.i1 special.i1e special.iv special.ive special.jv special.kv "
        "special.kve special.modified_bessel_k0 special.modified_bessel_k1 special.scaled_modified_bessel_k0 "
        "special.scaled_modified_bessel_k1 special.spherical_bessel_j0 special.spherical_jn special.yv",
        "i0_",
        "i0 special.airy_ai special.bessel_j0 special.bessel_j1 special.bessel_y0 special.bessel_y1 special.i0 "
        "special.i0e special.i1 special.i1e special.iv special.ive special.j0 special.j1 special.jn special.jv "
        "special.k0 special.k0e special.k1 special.k1e special.kv special.kve special.modified_bessel_i0 "
        "special.modified_bessel_i1 special.modified_bessel_k0 special.modified_bessel_k1 "
        "special.scaled_modified_bessel_k0 special.scaled_modified_bessel_k1 special.spherical_bessel_j0 "
        "special.spherical_jn special.y0 special.y1 special.yn special.yv",
        "i0 i0_",
    ),
    "bitwise": (
        "bitwise_and bitwise_count bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor gcd "
        "lcm",
        "bitwise_not_ gcd_ lcm_",
        "bitwise_and bitwise_count bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor gcd "
        "lcm",
        "bitwise_and bitwise_and_ bitwise_count bitwise_left_shift bitwise_left_shift_ bitwise_not bitwise_not_ "
        "bitwise_or bitwise_or_ bitwise_right_shift bitwise_right_shift_ bitwise_xor bitwise_xor_ gcd gcd_ lcm "
        "lcm_",
    ),
    "buffers": (
        "",
        "",
        "",
        "",
    ),
    "channels": (
        "channel_dot channel_mix channel_standardize norm_channels",
        "",
        "",
        "",
    ),
    "checksum": (
        "hash_tensor",
        "",
        "hash_tensor",
        "hash_tensor",
    ),
    "conditions": (
        "",
        "_assert_async _check _check_index _check_is_size _check_not_implemented _check_tensor_all _check_type "
        "_check_value",
        "",
        "",
    ),
    "constants": (
        "constant_in constant_without_gradient",
        "",
        "",
        "",
    ),
    "conv": (
        "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution convolution_input "
        "convolution_weight",
        "",
        "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d nn.functional.conv1d "
        "nn.functional.conv2d nn.functional.conv3d nn.functional.conv_transpose1d nn.functional.conv_transpose2d "
        "nn.functional.conv_transpose3d",
        "",
    ),
    "cross_entropy": (
        "class_gather class_grad class_loss class_residual class_scatter cross_entropy linear_cross_entropy "
        "mean_class_grad mean_class_loss nll_loss",
        "",
        "cross_entropy nll_loss nn.functional.cross_entropy nn.functional.linear_cross_entropy "
        "nn.functional.nll_loss",
        "",
    ),
    "decompose": (
        "cholesky_factor cholesky_info linalg.cholesky linalg.cholesky_ex linalg.qr qr qr_factors",
        "",
        "cholesky linalg.cholesky linalg.cholesky_ex linalg.qr qr",
        "cholesky qr",
    ),
    "distances": (
        "cdist dist pairwise_distance pdist row_distances",
        "",
        "cdist dist nn.functional.pairwise_distance nn.functional.pdist pairwise_distance pdist",
        "dist",
    ),
    "distributions": (
        "_standard_gamma_grad binomial multinomial poisson sample_beta sample_chi2 sample_dirichlet "
        "sample_student_t sample_von_mises standard_gamma",
        "",
        "_sample_dirichlet _standard_gamma _standard_gamma_grad binomial multinomial poisson sample_beta "
        "sample_chi2 sample_dirichlet sample_student_t sample_von_mises standard_gamma",
        "bernoulli_ cauchy_ exponential_ geometric_ log_normal_ multinomial normal_ random_ uniform_",
    ),
    "dropout": (
        "alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout feature_dropout keep",
        "alpha_dropout_ dropout_ feature_alpha_dropout_ feature_dropout_ nn.functional.alpha_dropout "
        "nn.functional.dropout nn.functional.dropout1d nn.functional.dropout2d nn.functional.dropout3d "
        "nn.functional.feature_alpha_dropout",
        "alpha_dropout dropout feature_alpha_dropout feature_dropout",
        "",
    ),
    "eigen": (
        "eig_factors eig_values eig_vectors eigenvalues_general eigenvalues_hermitian eigh_factors eigh_values "
        "eigh_vectors linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh",
        "",
        "linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh",
        "",
    ),
    "embedding": (
        "embedding embedding_bag lookup sum_rows",
        "embedding_renorm_",
        "nn.functional.embedding nn.functional.embedding_bag",
        "",
    ),
    "fft": (
        "dft fft.fft fft.fft2 fft.fftn fft.fftshift fft.hfft fft.hfft2 fft.hfftn fft.ifft fft.ifft2 fft.ifftn "
        "fft.ifftshift fft.ihfft fft.ihfft2 fft.ihfftn fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 "
        "fft.rfftn full_dft half_dft",
        "fft.fftfreq fft.rfftfreq",
        "fft.fft fft.fft2 fft.fftn fft.fftshift fft.hfft fft.hfft2 fft.hfftn fft.ifft fft.ifft2 fft.ifftn "
        "fft.ifftshift fft.ihfft fft.ihfft2 fft.ihfftn fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 "
        "fft.rfftn",
        "",
    ),
    "floats": (
        "addcdiv addcmul cbrt clamp_max clamp_min copysign deg2rad divide float_power fmax fmin fmod frac frexp "
        "frexp_exponent frexp_mantissa heaviside hypot isclose isneginf isposinf ldexp lerp logaddexp2 nan_to_num "
        "nextafter positive rad2deg rounded_quotient rsub scale_by_power_of_2 scaled_add signbit subtract",
        "allclose cbrt_ clamp_max_ clamp_min_ deg2rad_ equal frac_ ldexp_ nan_to_num_ rad2deg_",
        "addcdiv addcmul cbrt clamp_max clamp_min copysign deg2rad divide float_power fmax fmin fmod frac frexp "
        "heaviside hypot isclose isneginf isposinf ldexp lerp logaddexp2 nan_to_num nextafter positive rad2deg "
        "rsub signbit subtract",
        "addcdiv addcdiv_ addcmul addcmul_ allclose cbrt cbrt_ clamp_max clamp_max_ clamp_min clamp_min_ copysign "
        "copysign_ deg2rad deg2rad_ divide divide_ equal float_power fmax fmax_ fmin fmin_ fmod fmod_ frac frac_ "
        "frexp heaviside heaviside_ hypot hypot_ isclose isneginf isposinf ldexp ldexp_ lerp lerp_ logaddexp2 "
        "logaddexp2_ nan_to_num nan_to_num_ nextafter nextafter_ positive rad2deg rad2deg_ rsub signbit subtract "
        "subtract_",
    ),
    "fractional_pool": (
        "fractional_max_pool2d fractional_max_pool3d fractional_starts",
        "",
        "nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d",
        "",
    ),
    "fused_update": (
        "",
        "",
        "",
        "",
    ),
    "gamma": (
        "digamma gamma_cdf_derivative igamma igammac lgamma mvlgamma polygamma special.beta special.betaln "
        "special.gamma special.gammasgn special.rgamma",
        "digamma_ lgamma_ mvlgamma_",
        "digamma igamma igammac lgamma mvlgamma polygamma special.beta special.betaln special.digamma "
        "special.gamma special.gammainc special.gammaincc special.gammaln special.gammasgn special.multigammaln "
        "special.polygamma special.psi special.rgamma",
        "digamma digamma_ igamma igamma_ igammac igammac_ lgamma lgamma_ mvlgamma mvlgamma_ polygamma",
    ),
    "gather": (
        "add_slices gather index_select index_sum one_hot scatter_sum stacked_indices take_along_dim wrap_indices",
        "",
        "gather index_select nn.functional.one_hot one_hot take_along_dim",
        "gather index_select one_hot take_along_dim",
    ),
    "grid_sample": (
        "affine_grid grid_sample sample_points sample_points_backward sample_slopes",
        "",
        "nn.functional.affine_grid nn.functional.grid_sample",
        "",
    ),
    "grouped": (
        "",
        "nn.functional.grouped_mm",
        "",
        "",
    ),
    "histograms": (
        "bincount count_into_bins count_into_boxes histc histogram",
        "histogramdd",
        "bincount histc histogram",
        "bincount histc histogram",
    ),
    "householder": (
        "geqrf linalg.householder_product ormqr",
        "",
        "geqrf linalg.householder_product orgqr ormqr",
        "geqrf orgqr ormqr",
    ),
    "im2col": (
        "fold unfold window_columns window_sums",
        "",
        "nn.functional.fold nn.functional.unfold",
        "",
    ),
    "incomplete_beta": (
        "special.betainc",
        "",
        "special.betainc",
        "",
    ),
    "inplace_views": (
        "",
        "",
        "",
        "as_strided_ squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_",
    ),
    "interpolate": (
        "channel_shuffle interpolate pixel_shuffle pixel_unshuffle resample resample_backward upsample "
        "upsample_bilinear upsample_nearest",
        "",
        "channel_shuffle nn.functional.channel_shuffle nn.functional.interpolate nn.functional.pixel_shuffle "
        "nn.functional.pixel_unshuffle nn.functional.upsample nn.functional.upsample_bilinear "
        "nn.functional.upsample_nearest pixel_shuffle pixel_unshuffle",
        "",
    ),
    "join": (
        "atleast_1d atleast_2d atleast_3d block_diag cartesian_prod column_stack combination_indices combinations "
        "dstack hstack meshgrid repeat repeat_indices repeat_interleave tile vstack",
        "",
        "atleast_1d atleast_2d atleast_3d block_diag cartesian_prod column_stack combinations dstack hstack "
        "meshgrid repeat repeat_interleave row_stack tile vstack",
        "repeat repeat_interleave tile",
    ),
    "ldl": (
        "ldl_of ldl_parts ldl_swaps linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve",
        "",
        "linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve",
        "",
    ),
    "linear_cross_entropy_options": (
        "",
        "",
        "",
        "",
    ),
    "linspace": (
        "",
        "linspace logspace",
        "",
        "",
    ),
    "lobpcg": (
        "eigenpairs_of extreme_eigenpairs",
        "lobpcg",
        "",
        "",
    ),
    "losses": (
        "bernoulli_loss binary_cross_entropy binary_cross_entropy_with_logits huber huber_grad huber_loss kl_div "
        "l1_loss mse_loss share share_grad smooth_l1_loss squared_difference squared_difference_grad",
        "",
        "binary_cross_entropy huber_loss l1_loss mse_loss nn.functional.binary_cross_entropy "
        "nn.functional.binary_cross_entropy_with_logits nn.functional.huber_loss nn.functional.kl_div "
        "nn.functional.l1_loss nn.functional.mse_loss nn.functional.smooth_l1_loss smooth_l1_loss",
        "",
    ),
    "lowrank": (
        "pca_lowrank svd_lowrank",
        "",
        "pca_lowrank svd_lowrank",
        "",
    ),
    "lstsq": (
        "least_squares linalg.lstsq minimizer",
        "",
        "linalg.lstsq",
        "",
    ),
    "lu": (
        "linalg.lu linalg.lu_factor linalg.lu_factor_ex lu_of lu_unpack",
        "",
        "linalg.lu linalg.lu_factor linalg.lu_factor_ex lu_unpack",
        "",
    ),
    "masked": (
        "fill masked_fill masked_put masked_scatter masked_select masked_take nonzero_static",
        "where",
        "fill masked_fill masked_scatter masked_select nonzero_static",
        "masked_fill masked_fill_ masked_scatter masked_scatter_ masked_select nonzero_static where",
    ),
    "masked_reductions": (
        "masked.amax masked.amin masked.argmax masked.argmin masked.cumprod masked.cumsum masked.log_softmax "
        "masked.logaddexp masked.logsumexp masked.mean masked.median masked.norm masked.normalize masked.prod "
        "masked.softmax masked.softmin masked.std masked.sum masked.var",
        "",
        "masked.amax masked.amin masked.argmax masked.argmin masked.cumprod masked.cumsum masked.log_softmax "
        "masked.logaddexp masked.logsumexp masked.mean masked.median masked.norm masked.normalize masked.prod "
        "masked.softmax masked.softmin masked.std masked.sum masked.var",
        "",
    ),
    "matrices": (
        "diag diag_embed diagflat fliplr flipud rot90 swapaxes t tril_indices triu_indices vander",
        "tril_indices triu_indices",
        "diag diag_embed diagflat fliplr flipud rot90 swapaxes t vander",
        "diag diag_embed diagflat fill_diagonal_ fliplr flipud rot90 swapaxes t",
    ),
    "matrix_equations": (
        "logm solve_sylvester sqrtm",
        "",
        "",
        "",
    ),
    "matrix_functions": (
        "cofactor inverse_or_nan linalg.det linalg.inv linalg.inv_ex linalg.matrix_exp linalg.pinv linalg.slogdet "
        "linalg.tensorinv log_determinant logdet pinverse pseudo_inverse",
        "",
        "det inverse linalg.det linalg.inv linalg.inv_ex linalg.matrix_exp linalg.pinv linalg.slogdet "
        "linalg.tensorinv logdet matrix_exp pinverse slogdet",
        "det inverse logdet matrix_exp pinverse slogdet",
    ),
    "max_min": (
        "amax amin aminmax argmax argmin max min select_along",
        "",
        "amax amin aminmax argmax argmin max min",
        "amax amin aminmax argmax argmin max min",
    ),
    "multihead_attention": (
        "",
        "nn.functional.multi_head_attention_forward",
        "",
        "",
    ),
    "native": (
        "",
        "affine_grid_generator batch_norm binary_cross_entropy_with_logits conv_tbc convolution "
        "cosine_embedding_loss ctc_loss embedding grid_sampler grid_sampler_2d grid_sampler_3d gru_cell "
        "hinge_embedding_loss instance_norm kl_div lstm_cell margin_ranking_loss native_batch_norm "
        "native_channel_shuffle native_dropout native_group_norm native_layer_norm nn.functional.conv_tbc "
        "nn.functional.native_channel_shuffle poisson_nll_loss rnn_relu_cell rnn_tanh_cell triplet_margin_loss",
        "",
        "dim_order float_power_ polygamma_",
    ),
    "nn": (
        "cosine_similarity log_softmax log_softmax_grad normalize scaled_dot_product_attention softmax "
        "softmax_grad",
        "",
        "cosine_similarity log_softmax nn.functional.cosine_similarity nn.functional.log_softmax "
        "nn.functional.normalize nn.functional.scaled_dot_product_attention nn.functional.softmax normalize "
        "scaled_dot_product_attention softmax special.log_softmax special.softmax",
        "log_softmax softmax",
    ),
    "norm": (
        "euclidean_norm frobenius_norm linalg.cond linalg.matrix_norm linalg.matrix_rank linalg.norm "
        "linalg.vector_norm norm norm_except_dim nuclear_norm power_norm renorm",
        "renorm_",
        "frobenius_norm linalg.cond linalg.matrix_norm linalg.matrix_rank linalg.norm linalg.vector_norm norm "
        "norm_except_dim nuclear_norm renorm",
        "norm renorm renorm_",
    ),
    "norm_rows": (
        "norm_rows norm_rows_grad",
        "",
        "",
        "",
    ),
    "normalize": (
        "affine batch_norm group_norm instance_norm layer_norm local_response_norm rms_norm standardize",
        "",
        "group_norm layer_norm nn.functional.batch_norm nn.functional.group_norm nn.functional.instance_norm "
        "nn.functional.layer_norm nn.functional.local_response_norm nn.functional.rms_norm rms_norm standardize",
        "",
    ),
    "orthogonal_polynomials": (
        "associated_laguerre_polynomial gegenbauer_polynomial special.chebyshev_polynomial_t "
        "special.chebyshev_polynomial_u special.chebyshev_polynomial_v special.chebyshev_polynomial_w "
        "special.hermite_polynomial_h special.hermite_polynomial_he special.laguerre_polynomial_l "
        "special.legendre_polynomial_p special.shifted_chebyshev_polynomial_t "
        "special.shifted_chebyshev_polynomial_u special.shifted_chebyshev_polynomial_v "
        "special.shifted_chebyshev_polynomial_w",
        "",
        "special.chebyshev_polynomial_t special.chebyshev_polynomial_u special.chebyshev_polynomial_v "
        "special.chebyshev_polynomial_w special.hermite_polynomial_h special.hermite_polynomial_he "
        "special.laguerre_polynomial_l special.legendre_polynomial_p special.shifted_chebyshev_polynomial_t "
        "special.shifted_chebyshev_polynomial_u special.shifted_chebyshev_polynomial_v "
        "special.shifted_chebyshev_polynomial_w",
        "",
    ),
    "pad": (
        "constant_pad_nd pad",
        "",
        "constant_pad_nd nn.functional.pad",
        "",
    ),
    "pairwise_losses": (
        "cosine_embedding_loss ctc_loss gaussian_nll_loss hinge_embedding_loss margin_ranking_loss "
        "multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss poisson_nll_loss soft_margin_loss "
        "triplet_margin_loss triplet_margin_with_distance_loss variance_at_least",
        "",
        "nn.functional.cosine_embedding_loss nn.functional.ctc_loss nn.functional.gaussian_nll_loss "
        "nn.functional.hinge_embedding_loss nn.functional.margin_ranking_loss nn.functional.multi_margin_loss "
        "nn.functional.multilabel_margin_loss nn.functional.multilabel_soft_margin_loss "
        "nn.functional.poisson_nll_loss nn.functional.soft_margin_loss nn.functional.triplet_margin_loss "
        "nn.functional.triplet_margin_with_distance_loss",
        "",
    ),
    "parameter_slopes": (
        "",
        "",
        "",
        "",
    ),
    "pool_indices": (
        "",
        "adaptive_max_pool1d max_pool1d_with_indices nn.functional.adaptive_max_pool1d_with_indices "
        "nn.functional.adaptive_max_pool2d_with_indices nn.functional.adaptive_max_pool3d_with_indices "
        "nn.functional.fractional_max_pool2d_with_indices nn.functional.fractional_max_pool3d_with_indices "
        "nn.functional.max_pool1d_with_indices nn.functional.max_pool2d_with_indices "
        "nn.functional.max_pool3d_with_indices",
        "",
        "",
    ),
    "pooling": (
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
        "adaptive_max_pool3d avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d lp_pool3d max_pool1d max_pool2d "
        "max_pool3d max_pool_indices max_unpool1d max_unpool2d max_unpool3d pooled_max pooled_max_backward "
        "pooled_sum pooled_sum_backward",
        "",
        "adaptive_avg_pool1d avg_pool1d max_pool1d max_pool2d max_pool3d nn.functional.adaptive_avg_pool1d "
        "nn.functional.adaptive_avg_pool2d nn.functional.adaptive_avg_pool3d nn.functional.adaptive_max_pool1d "
        "nn.functional.adaptive_max_pool2d nn.functional.adaptive_max_pool3d nn.functional.avg_pool1d "
        "nn.functional.avg_pool2d nn.functional.avg_pool3d nn.functional.lp_pool1d nn.functional.lp_pool2d "
        "nn.functional.lp_pool3d nn.functional.max_pool1d nn.functional.max_pool2d nn.functional.max_pool3d "
        "nn.functional.max_unpool1d nn.functional.max_unpool2d nn.functional.max_unpool3d",
        "",
    ),
    "precision_settings": (
        "",
        "are_deterministic_algorithms_enabled get_deterministic_debug_mode get_float32_matmul_precision "
        "is_deterministic_algorithms_warn_only_enabled set_deterministic_debug_mode set_float32_matmul_precision "
        "set_flush_denormal use_deterministic_algorithms",
        "",
        "",
    ),
    "printing": (
        "",
        "set_printoptions",
        "",
        "__repr__",
    ),
    "products": (
        "addbmm addmv addr baddbmm bilinear chain_matmul cross inner kron linalg.cross linalg.diagonal "
        "linalg.matrix_power linalg.matrix_transpose linalg.multi_dot linalg.trace linalg.vander linalg.vecdot "
        "tensordot",
        "addmv_",
        "addbmm addmv addr baddbmm bilinear chain_matmul cross inner kron linalg.cross linalg.diagonal "
        "linalg.matrix_power linalg.matrix_transpose linalg.multi_dot linalg.tensordot linalg.trace linalg.vander "
        "linalg.vecdot matrix_power matrix_transpose nn.functional.bilinear tensordot vecdot",
        "addbmm addbmm_ addmv addmv_ addr addr_ baddbmm baddbmm_ cross inner kron matrix_power",
    ),
    "quantize": (
        "",
        "dequantize fake_quantize_per_channel_affine fake_quantize_per_tensor_affine",
        "",
        "dequantize",
    ),
    "random": (
        "bernoulli normal rand randint randn randperm",
        "normal rand rand_like randint randint_like randn randn_like randperm",
        "bernoulli",
        "bernoulli",
    ),
    "recurrent": (
        "gru_step gru_step_grad lstm_step lstm_step_grad",
        "",
        "",
        "",
    ),
    "recurrent_cells": (
        "",
        "",
        "",
        "",
    ),
    "recurrent_derivatives": (
        "",
        "",
        "",
        "",
    ),
    "recurrent_family": (
        "",
        "",
        "",
        "",
    ),
    "recurrent_layers": (
        "gru_layer gru_layer_backward lstm_layer lstm_layer_backward recurrent_gradients rnn_relu_layer "
        "rnn_relu_layer_backward rnn_tanh_layer rnn_tanh_layer_backward",
        "",
        "",
        "",
    ),
    "resize_memory": (
        "",
        "resize_as_",
        "",
        "resize_ resize_as_",
    ),
    "scaled_products": (
        "",
        "nn.functional.ScalingType nn.functional.SwizzleType nn.functional.scaled_mm",
        "",
        "",
    ),
    "scan": (
        "cummax cummin cumprod cumsum cumulative_trapezoid diff gradient linear_recurrence logcumsumexp "
        "running_extremes trapezoid",
        "cumprod_ cumsum_",
        "cummax cummin cumprod cumsum cumulative_trapezoid diff gradient logcumsumexp trapezoid trapz",
        "cummax cummin cumprod cumprod_ cumsum cumsum_ diff logcumsumexp",
    ),
    "scatter": (
        "group_order index_add index_copy index_fill index_reduce put scatter scatter_add scatter_max scatter_min "
        "scatter_prod scatter_reduce scatter_set",
        "index_put index_put_",
        "index_add index_copy index_fill index_reduce put scatter scatter_add scatter_reduce",
        "index_add index_add_ index_copy index_copy_ index_fill index_fill_ index_put index_put_ index_reduce "
        "index_reduce_ put put_ scatter scatter_ scatter_add scatter_add_ scatter_reduce scatter_reduce_",
    ),
    "segment_reduce": (
        "",
        "segment_reduce",
        "",
        "",
    ),
    "signal_windows": (
        "signal.windows.bartlett signal.windows.cosine signal.windows.exponential signal.windows.gaussian "
        "signal.windows.general_cosine signal.windows.kaiser",
        "bartlett_window blackman_window hamming_window hann_window kaiser_window signal.windows.bartlett "
        "signal.windows.blackman signal.windows.cosine signal.windows.exponential signal.windows.gaussian "
        "signal.windows.general_cosine signal.windows.general_hamming signal.windows.hamming signal.windows.hann "
        "signal.windows.kaiser signal.windows.nuttall",
        "",
        "",
    ),
    "solve": (
        "checked_info cholesky_inverse cholesky_solve linalg.lu_solve linalg.solve linalg.solve_ex "
        "linalg.solve_triangular linalg.tensorsolve lu_parts lu_solve order_of_rows solve_factors solved "
        "triangular triangular_solve",
        "linalg.LinAlgError",
        "cholesky_inverse cholesky_solve linalg.lu_solve linalg.solve linalg.solve_ex linalg.solve_triangular "
        "linalg.tensorsolve lu_solve triangular_solve",
        "cholesky_inverse cholesky_solve lu_solve triangular_solve",
    ),
    "sort": (
        "argsort bucketize insertion_indices isin kth_indices kthvalue msort searchsorted sort sorted_values topk "
        "topk_indices unique unique_consecutive unique_indices unique_values",
        "",
        "argsort bucketize isin kthvalue msort searchsorted sort topk unique unique_consecutive",
        "argsort kthvalue msort sort topk unique unique_consecutive",
    ),
    "sparsity_rules": (
        "",
        "",
        "",
        "",
    ),
    "special": (
        "cosine_integral erfc erfinv log_odds logit sinc sinc_derivative sine_integral special.entr "
        "special.erfcinv special.erfcx special.exp1 special.expi special.expn special.kl_div special.log_ndtr "
        "special.ndtr special.ndtri special.rel_entr special.sici special.xlog1py xlogy",
        "erfc_ erfinv_ logit_ sinc_ xlogy_",
        "erfc erfinv logit sinc special.entr special.erfc special.erfcinv special.erfcx special.erfinv "
        "special.exp1 special.expi special.expn special.kl_div special.log_ndtr special.logit special.ndtr "
        "special.ndtri special.rel_entr special.sici special.sinc special.xlog1py special.xlogy xlogy",
        "erfc erfc_ erfinv erfinv_ logit logit_ sinc sinc_ xlogy xlogy_",
    ),
    "split": (
        "chunk dsplit hsplit narrow_copy split split_views split_with_sizes tensor_split unbind unsafe_chunk "
        "unsafe_split unsafe_split_with_sizes vsplit",
        "",
        "chunk dsplit hsplit narrow_copy split split_with_sizes tensor_split unbind unsafe_chunk unsafe_split "
        "unsafe_split_with_sizes vsplit",
        "chunk dsplit hsplit narrow_copy split split_with_sizes tensor_split unbind unsafe_chunk unsafe_split "
        "unsafe_split_with_sizes vsplit",
    ),
    "statistics": (
        "corrcoef cov median median_indices middle mode mode_indices nanmedian nanquantile order_statistics "
        "quantile rank_indices within",
        "",
        "corrcoef cov median mode nanmedian nanquantile quantile",
        "corrcoef cov median mode nanmedian nanquantile quantile",
    ),
    "stft": (
        "checked_envelope istft stft",
        "",
        "istft stft",
        "istft stft",
    ),
    "storage": (
        "",
        "is_storage",
        "",
        "",
    ),
    "storage_methods": (
        "",
        "from_file",
        "",
        "const_data_ptr is_set_to set_ storage storage_type untyped_storage",
    ),
    "svd": (
        "linalg.svd linalg.svdvals singular_values_alone svd svd_factors svd_values svd_vectors",
        "",
        "linalg.svd linalg.svdvals svd",
        "svd",
    ),
    "symbolic": (
        "",
        "sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum",
        "",
        "",
    ),
    "to_device": (
        "to_device",
        "",
        "",
        "",
    ),
    "view_copies": (
        "",
        "alias_copy as_strided_copy detach_copy diagonal_copy expand_copy permute_copy select_copy slice_copy "
        "split_copy split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy unfold_copy "
        "unsqueeze_copy view_as_complex_copy view_as_real_copy view_copy",
        "",
        "",
    ),
    "weighted_sum": (
        "weighted_sum",
        "",
        "",
        "",
    ),
    "zeta": (
        "special.zeta",
        "",
        "special.zeta",
        "",
    ),
}
