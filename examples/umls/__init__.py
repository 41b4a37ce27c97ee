"""UMLS: which facts of a small medical knowledge graph are true, by vectors of entities and relations."""
