"""Checks of schemas against the tags `inplace` and `out`: the results must be the arguments that are written to."""

from retrograd.library.schema import CustomSchema
from retrograd.library.tags import Tag


def problem_with_tags(schema: CustomSchema, tags: list[Tag]) -> str | None:
    """Return what contradicts a tag in a schema that a user wrote; None if nothing does."""
    if Tag.inplace in tags:
        return _problem_with_inplace(schema)
    return _problem_with_out(schema) if Tag.out in tags else None


def _problem_with_inplace(schema: CustomSchema) -> str | None:
    first = schema.by_position[0] if schema.by_position else None
    if first is None or first.type != "Tensor" or schema.mutated != (first.name,):
        return "a schema tagged with rg.Tag.inplace must mutate its first positional argument, a Tensor, and no other"
    if schema.returned != {0: first.name} or schema.results != ():
        return (
            "a schema tagged with rg.Tag.inplace must return its first mutable argument (the return must alias it): "
            f"Tensor(a!) {first.name} -> Tensor(a!)"
        )
    return None


def _problem_with_out(schema: CustomSchema) -> str | None:
    mutated = [p for p in schema.parameters if p.mutated]
    positional = [p.name for p in mutated if not p.keyword_only]
    if positional:
        return (
            "a schema tagged with rg.Tag.out requires all mutable arguments to be keyword-only (after the *). Found "
            f"mutable positional args: {positional}"
        )
    if not mutated:
        return "a schema tagged with rg.Tag.out requires at least one mutable keyword-only argument"
    if any(p.type != "Tensor" for p in mutated):
        return "a schema tagged with rg.Tag.out only supports Tensor mutable arguments"
    if [*schema.returned.values()] != [p.name for p in mutated] or schema.results != ():
        return "a schema tagged with rg.Tag.out must return its mutable arguments, in their order"
    return None
