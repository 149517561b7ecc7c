"""The signature table: one row a message form and version range, each naming its class."""
