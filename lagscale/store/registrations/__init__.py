"""The scaler's side of the registry: registrations, inline monitors, recorded answers."""
