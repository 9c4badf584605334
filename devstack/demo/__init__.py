"""The main job in one minute: a spike that scales nothing, a backlog that lasts and does, and its end."""
