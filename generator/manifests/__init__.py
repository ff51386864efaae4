"""Other systems' manifests as placement requests. Pure: text and files are the caller's."""
