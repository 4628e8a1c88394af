"""torchmetrics: measures of classes, numbers, images and texts, and collections of them over batches."""

import numpy as np
import torch
import torchmetrics as tm
import torchmetrics.functional as F
from torchmetrics.functional import image

CLASSES = (
    "accuracy precision recall f1_score auroc average_precision cohen_kappa matthews_corrcoef confusion_matrix "
    "jaccard_index calibration_error specificity stat_scores"
)
NUMBERS = (
    "mean_squared_error mean_absolute_error pearson_corrcoef spearman_corrcoef r2_score explained_variance "
    "kendall_rank_corrcoef concordance_corrcoef log_cosh_error symmetric_mean_absolute_percentage_error"
)
WITH_RANGE = ["structural_similarity_index_measure", "peak_signal_noise_ratio"]
IMAGES = (
    "universal_image_quality_index spectral_angle_mapper error_relative_global_dimensionless_synthesis "
    "spectral_distortion_index relative_average_spectral_error"
)


def answers():
    """Return values by measure, and the gradients of measures of images."""
    numbers = np.random.default_rng(0)
    scores, classes = torch.from_numpy(numbers.uniform(size=(40, 4))).softmax(-1), torch.arange(40) * 7 % 4
    chance, hits = torch.from_numpy(numbers.uniform(size=40)), torch.arange(40) * 5 % 3 % 2
    a, b = torch.from_numpy(numbers.normal(size=(2, 40)))
    x, y = torch.from_numpy(numbers.uniform(size=(2, 2, 3, 32, 32)))
    found = {}
    for name in CLASSES.split():
        measure = getattr(F, name)
        found[f"classes {name}"] = measure(scores, classes, task="multiclass", num_classes=4).numpy()
        found[f"hits {name}"] = measure(chance, hits, task="binary").numpy()
    for name in ("roc", "precision_recall_curve"):
        curves = getattr(F, name)(chance, hits, task="binary")
        found.update({f"hits {name} {i}": values.numpy() for i, values in enumerate(curves)})
    found.update({f"numbers {name}": getattr(F, name)(a, b).numpy() for name in NUMBERS.split()})
    for name in (*WITH_RANGE, *IMAGES.split()):
        z, settings = x.clone().requires_grad_(), {"data_range": 1.0} if name in WITH_RANGE else {}
        value = getattr(image, name)(z, y, **settings)
        value.backward()
        found[f"images {name}"], found[f"images {name} gradient"] = value.detach().numpy(), z.grad.numpy()
    found["images total_variation"] = image.total_variation(x).numpy()
    settings = {"task": "multiclass", "num_classes": 4}
    both = tm.MetricCollection([tm.Accuracy(**settings), tm.F1Score(average="macro", **settings), tm.AUROC(**settings)])
    for part in range(0, 40, 10):
        both.update(scores[part : part + 10], classes[part : part + 10])
    found.update({f"collection {name}": value.numpy() for name, value in both.compute().items()})
    first, second = tm.MeanSquaredError(), tm.MeanSquaredError()
    first.persistent(True)
    second.persistent(True)
    first.update(a.float(), b.float())
    second.load_state_dict(first.state_dict())
    found.update({f"state {name}": value.numpy() for name, value in second.state_dict().items()})
    texts = ["the cat is on the mat"], [["there is a cat on the mat", "a cat is on the mat"]]
    return {**found, "bleu": F.bleu_score(*texts).numpy()}
