"""What several services need to reach a tenant's Kafka cluster: settings of the client, credentials, addresses."""
