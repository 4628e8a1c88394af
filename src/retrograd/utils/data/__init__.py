"""Data in batches: datasets, samplers, and the loader that prefetches with threads or processes."""

from retrograd.foundation import lazy_imports as _lazy
from retrograd.utils.data.arrow import ArrowDataset as ArrowDataset
from retrograd.utils.data.collate import default_collate as default_collate
from retrograd.utils.data.collate import default_convert as default_convert
from retrograd.utils.data.collate import nested_collate as nested_collate
from retrograd.utils.data.dataset import ChainDataset as ChainDataset
from retrograd.utils.data.dataset import ConcatDataset as ConcatDataset
from retrograd.utils.data.dataset import Dataset as Dataset
from retrograd.utils.data.dataset import IterableDataset as IterableDataset
from retrograd.utils.data.dataset import StackDataset as StackDataset
from retrograd.utils.data.dataset import Subset as Subset
from retrograd.utils.data.dataset import TensorDataset as TensorDataset
from retrograd.utils.data.dataset import random_split as random_split
from retrograd.utils.data.loader import DataLoader as DataLoader
from retrograd.utils.data.sampler import BatchSampler as BatchSampler
from retrograd.utils.data.sampler import DistributedSampler as DistributedSampler
from retrograd.utils.data.sampler import RandomSampler as RandomSampler
from retrograd.utils.data.sampler import Sampler as Sampler
from retrograd.utils.data.sampler import SequentialSampler as SequentialSampler
from retrograd.utils.data.sampler import SubsetRandomSampler as SubsetRandomSampler
from retrograd.utils.data.sampler import WeightedRandomSampler as WeightedRandomSampler
from retrograd.utils.data.worker import WorkerInfo as WorkerInfo
from retrograd.utils.data.worker import get_worker_info as get_worker_info

__getattr__, __dir__ = _lazy.lazy_names(__name__, {"distributed": "retrograd.utils.data.distributed"})
