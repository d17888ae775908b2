"""Measures with JaCoCo which branches of Kafka's coordinator classes the judge's histories reach."""
