"""Pictures of autograd graphs: read the graph, fold repetitions, arrange boxes in rows, write SVG."""
