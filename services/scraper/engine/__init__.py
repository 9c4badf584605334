"""What runs in the stream's processes: leader, workers, writes."""
