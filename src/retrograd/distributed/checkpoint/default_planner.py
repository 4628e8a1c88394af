"""PyTorch's objects for the choice of what is saved and loaded."""


class DefaultSavePlanner:
    """The default choice of `save`; its arguments have no effect."""

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:
        """Accept PyTorch's arguments."""


class DefaultLoadPlanner:
    """Whether `load` may skip names that the checkpoint lacks; other arguments have no effect."""

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ) -> None:
        self.allow_partial_load = allow_partial_load
