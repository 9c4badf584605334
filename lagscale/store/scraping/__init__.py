"""What the scraper polls: targets, links to topics, and the lease."""
