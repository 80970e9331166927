"""What Kafka's messages look like: facts imported from Kafka's definitions, a registry over them, and the exceptions."""
