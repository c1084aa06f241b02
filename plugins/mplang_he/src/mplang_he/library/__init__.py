"""EncryptedColumns by SEAL, by way of the low interface of tenseal."""
