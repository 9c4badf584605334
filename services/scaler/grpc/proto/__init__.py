"""The external-scaler contract of KEDA, and the code generated from it."""
