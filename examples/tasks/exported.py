"""Export a model, and run the file in another process with another batch size: `python examples/tasks/exported.py`."""

import subprocess
import sys
import tempfile

import retrograd as rg
from retrograd import nn

if len(sys.argv) == 1:
    path = f"{tempfile.mkdtemp()}/model.zip"
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)).eval()
    batch = rg.export.Dim("batch", min=1, max=64)
    program = rg.export.export(model, (rg.randn(2, 1, 8, 8),), dynamic_shapes=({0: batch},))
    rg.export.save(program, path)
    subprocess.run([sys.executable, __file__, path], check=True)
else:
    module = rg.export.load(sys.argv[1]).module()
    print(module(rg.randn(7, 1, 8, 8)).shape)
