"""The rooms of the doctor: copying the patient, measuring it, and one file for each kind of illness."""
