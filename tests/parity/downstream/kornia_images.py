"""Kornia: filters, geometry, colors, losses and features of images, with gradients."""

import kornia
import torch
from seeded import array

FILTERS = {
    "gaussian": lambda x: kornia.filters.gaussian_blur2d(x, (3, 5), (1.0, 1.5)),
    "sobel": kornia.filters.sobel,
    "laplacian": lambda x: kornia.filters.laplacian(x, 3),
    "box": lambda x: kornia.filters.box_blur(x, (3, 3)),
    "median": lambda x: kornia.filters.median_blur(x, (3, 3)),
    "bilateral": lambda x: kornia.filters.bilateral_blur(x, (3, 3), 0.1, (1.0, 1.0)),
    "motion": lambda x: kornia.filters.motion_blur(x, 3, 30.0, 0.5),
    "unsharp": lambda x: kornia.filters.unsharp_mask(x, (3, 3), (1.0, 1.0)),
    "gradient": kornia.filters.spatial_gradient,
    "hsv": kornia.color.rgb_to_hsv,
    "lab": kornia.color.rgb_to_lab,
    "gray": kornia.color.rgb_to_grayscale,
    "ycbcr": kornia.color.rgb_to_ycbcr,
    "xyz": kornia.color.rgb_to_xyz,
    "sepia": kornia.color.sepia,
    "brightness": lambda x: kornia.enhance.adjust_brightness(x, 0.2),
    "contrast": lambda x: kornia.enhance.adjust_contrast(x, 0.7),
    "gamma": lambda x: kornia.enhance.adjust_gamma(x, 1.3),
    "hue": lambda x: kornia.enhance.adjust_hue(x, 0.4),
    "equalize": kornia.enhance.equalize,
    "clahe": lambda x: kornia.enhance.equalize_clahe(x, grid_size=(2, 2)),
    "normalize": lambda x: kornia.enhance.normalize(x, torch.full((3,), 0.4), torch.full((3,), 0.3)),
    "dilation": lambda x: kornia.morphology.dilation(x, torch.ones(3, 3)),
    "opening": lambda x: kornia.morphology.opening(x, torch.ones(3, 3)),
    "resize": lambda x: kornia.geometry.transform.resize(x, (9, 11)),
    "rotate": lambda x: kornia.geometry.transform.rotate(x, torch.tensor([25.0, -40.0])),
    "translate": lambda x: kornia.geometry.transform.translate(x, torch.tensor([[1.0, 2.0], [0.5, -1.0]])),
    "affine": lambda x: kornia.geometry.transform.affine(x, torch.tensor([[[1.0, 0.1, 0.5], [0.2, 0.9, -0.5]]] * 2)),
    "perspective": lambda x: kornia.geometry.transform.warp_perspective(x, homography(), (12, 14)),
    "pyramid": lambda x: kornia.geometry.transform.pyrdown(x),
    "flip": kornia.geometry.transform.hflip,
    "crop": lambda x: kornia.geometry.transform.center_crop(x, (8, 8)),
    "harris": lambda x: kornia.feature.harris_response(x),
    "hessian": lambda x: kornia.feature.hessian_response(x),
}
LOSSES = {
    "ssim": lambda a, b: kornia.losses.ssim_loss(a, b, 5),
    "psnr": lambda a, b: kornia.losses.psnr_loss(a, b, 1.0),
    "variation": lambda a, b: kornia.losses.total_variation(a).mean(),
    "charbonnier": lambda a, b: kornia.losses.charbonnier_loss(a, b, reduction="mean"),
    "cauchy": lambda a, b: kornia.losses.cauchy_loss(a, b, reduction="mean"),
    "divergence": lambda a, b: kornia.losses.kl_div_loss_2d(a.softmax(-1), b.softmax(-1)),
    "inverse depth": lambda a, b: kornia.losses.inverse_depth_smoothness_loss(a[:, :1], b),
}


def homography():
    """Return two matrices of perspective."""
    return torch.eye(3).repeat(2, 1, 1) + torch.tensor([[0.0, 0.05, 0.3], [0.02, 0.0, -0.2], [0.001, 0.002, 0.0]])


def answers():
    """Return images, losses and gradients."""
    found = {}
    image, other = (array(2, 3, 12, 14, seed=seed).sigmoid() for seed in (1, 2))

    def keep(name, run):
        x = image.clone().requires_grad_()
        out = run(x)
        found[name] = out.detach().numpy()
        if out.requires_grad:
            out.square().sum().backward()
            found[f"{name} gradient"] = x.grad.numpy()

    for name, run in FILTERS.items():
        keep(name, run)
    for name, run in LOSSES.items():
        keep(name, lambda x, run=run: run(x, other))
    logits, labels = array(2, 4, 5, 5), torch.arange(50).reshape(2, 5, 5) % 4
    for name in ("dice_loss", "tversky_loss", "focal_loss", "lovasz_softmax_loss"):
        x = logits.clone().requires_grad_()
        settings = {"alpha": 0.5, "reduction": "mean"} if name == "focal_loss" else {}
        settings = {"alpha": 0.4, "beta": 0.6} if name == "tversky_loss" else settings
        loss = getattr(kornia.losses, name)(x, labels, **settings)
        loss.backward()
        found[name], found[f"{name} gradient"] = loss.detach().numpy(), x.grad.numpy()
    points = array(1, 6, 2, seed=5)
    found["homography"] = kornia.geometry.find_homography_dlt(points, points * 1.5 + 0.3).numpy()
    quaternion = array(4, 4, seed=6).requires_grad_()
    matrix = kornia.geometry.quaternion_to_rotation_matrix(quaternion)
    matrix.mul(torch.arange(9.0).reshape(3, 3)).sum().backward()
    found["rotation"], found["rotation gradient"] = matrix.detach().numpy(), quaternion.grad.numpy()
    found["axis"] = kornia.geometry.rotation_matrix_to_axis_angle(matrix.detach()).numpy()
    return found
