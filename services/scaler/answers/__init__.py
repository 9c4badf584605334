"""From resolved monitors to answers: snapshots, last-known and frozen answers, rate limit, decision log."""
