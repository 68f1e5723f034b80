"""Other people's files in: a declarative description for each public layout, and one generic importer."""
