"""The backend ``grpc``: one gRPC server per party, for the host and for the other parties."""
