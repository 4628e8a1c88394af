"""Train a convolutional network on handwritten digits, with batches from a `DataLoader`.

    pip install "retrograd[demo]"
    python examples/digits.py

The 1797 images of 8 by 8 pixels come with scikit-learn; a fifth of them is the test set. The picture shows
misclassified test images and the gradient, with respect to the pixels, of the predicted class's logit minus the true
class's logit. In red pixels, ink increases the logit of the wrong class.
"""

import time
from pathlib import Path

import sklearn.datasets

import retrograd as rg
from retrograd import nn, optim
from retrograd.nn import functional as F
from retrograd.utils.data import DataLoader, Dataset, TensorDataset, random_split


def network(width: int = 32) -> nn.Sequential:
    """Return the network; it maps images (n, 1, 8, 8) to logits (n, 10)."""
    return nn.Sequential(
        *convolution(1, width),
        *convolution(width, width),
        nn.MaxPool2d(2),
        *convolution(width, 2 * width),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(2 * width * 2 * 2, 10),
    )


def convolution(before: int, after: int) -> tuple[nn.Module, ...]:
    return nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()


def images() -> tuple[rg.Tensor, rg.Tensor]:
    """Return all images, of shape (n, 1, 8, 8) with values from 0 to 1, and their labels."""
    found = sklearn.datasets.load_digits()
    return rg.tensor(found.images, dtype=rg.float32)[:, None] / 16, rg.tensor(found.target)


def shift_randomly(x: rg.Tensor) -> rg.Tensor:
    """Return the images shifted by up to one pixel: data augmentation against overfitting."""
    down, right = (rg.randint(-1, 2, (2,))).tolist()
    return x.roll((down, right), (2, 3))


def train(model: nn.Module, data: Dataset, epochs: int) -> None:
    """Train with AdamW and a one-cycle learning rate."""
    batches = DataLoader(data, batch_size=64, shuffle=True, drop_last=True)
    optimizer = optim.AdamW(model.parameters(), lr=1e-2)
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=epochs * len(batches))
    for epoch in range(epochs):
        start, total = time.perf_counter(), 0.0
        for x, y in batches:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(shift_randomly(x)), y, label_smoothing=0.05)
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch + 1}: loss {total / len(batches):.3f}, {time.perf_counter() - start:.2f} s")


def find_mistakes(model: nn.Module, data: Dataset) -> tuple[float, list[tuple[rg.Tensor, int, int]]]:
    """Return the accuracy, and the misclassified images with their true and predicted labels."""
    x, y = next(iter(DataLoader(data, batch_size=len(data))))
    with rg.no_grad():
        said = model(x).argmax(1)
    places = (said != y).nonzero()[:, 0].tolist()
    return 1 - len(places) / len(y), [(x[i], y[i].item(), said[i].item()) for i in places]


def saliency(model: nn.Module, image: rg.Tensor, right: int, said: int) -> rg.Tensor:
    """Return the gradient of logit(predicted) - logit(true) with respect to the pixels."""

    def lead(x: rg.Tensor) -> rg.Tensor:
        scores = model(x[None])[0]
        return scores[said] - scores[right]

    return rg.func.grad(lead)(image)[0].detach()  # the weights require grad, the plot does not need their graph


def draw(path: Path, model: nn.Module, mistakes: list[tuple[rg.Tensor, int, int]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.4 * len(mistakes) + 0.4, 2.9), layout="constrained")
    for column, (image, right, said) in zip(figure.subplots(2, len(mistakes), squeeze=False).T, mistakes, strict=True):
        why = saliency(model, image, right, said).numpy()
        column[0].imshow(image[0].numpy(), cmap="gray_r")
        column[0].set_title(f"{right}, read as {said}", fontsize=9)
        column[1].imshow(why, cmap="RdBu_r", vmin=-abs(why).max(), vmax=abs(why).max())
        for axes in column:
            axes.set_axis_off()
    figure.savefig(path, dpi=120)


def main(epochs: int = 15, width: int = 32, picture: Path | None = Path("digits.png")) -> float:
    rg.manual_seed(0)
    data = TensorDataset(*images())
    learned, tested = random_split(data, [0.8, 0.2])
    model = network(width)
    train(model, learned, epochs)
    accuracy, mistakes = find_mistakes(model.eval(), tested)
    print(f"{accuracy:.2%} of {len(tested)} test images are classified correctly")
    if picture is not None and mistakes:
        draw(picture, model, mistakes[:6])
    return accuracy


if __name__ == "__main__":
    main()
