"""A verdict told to other systems: JUnit, events for Elasticsearch, messages for a chat."""
