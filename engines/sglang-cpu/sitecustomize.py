"""Lets torchvision be imported beside a CPU build of torch; Python reads this file when it starts.

torchvision's published wheel is a CUDA build, and its compiled part cannot be loaded here. Its
Python part only wants two operators to be declared, which are never called for a text model.
"""

import importlib.abc
import sys


class _Declares(importlib.abc.MetaPathFinder):
    """Declares the operators just before torchvision is imported for the first time."""

    library: object = None

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        """Never finds a module: the usual finders do."""
        if name == "torchvision" and _Declares.library is None:
            import torch

            library = torch.library.Library("torchvision", "DEF")
            boxes = "Tensor dets, Tensor scores, float iou_threshold"
            library.define(f"nms({boxes}) -> Tensor")
            library.define(f"qnms({boxes}) -> Tensor")
            _Declares.library = library  # what is declared lives as long as this


sys.meta_path.insert(0, _Declares())
