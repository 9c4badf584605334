"""The registry: SQLAlchemy tables and the admin side; SQLAlchemy is used here and nowhere else."""
