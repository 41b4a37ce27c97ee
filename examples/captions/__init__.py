"""Pictures of two shapes with captions: a contrastive image-text model and a captioner."""
