"""Which branches of Kafka's coordinator classes the judge's histories reach, measured by JaCoCo."""
