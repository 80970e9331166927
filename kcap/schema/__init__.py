"""The layout of Kafka's messages: facts imported from Kafka's definitions, a registry of them, and the exceptions."""
