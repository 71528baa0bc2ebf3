"""Items: readings that show one physical item become one result."""
