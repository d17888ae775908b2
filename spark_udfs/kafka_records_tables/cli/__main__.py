"""`python -m kafka_records_tables.cli`."""

import sys

from kafka_records_tables.cli.main import main

sys.exit(main())
