"""Run a lowered schedule: every rank executes its list of actions on its stages."""
