"""Making a judge better: reweighting, fine-tuning, rubrics, on one frozen split."""
