"""`python -m kafka_records_tables.commands`."""

import sys

from kafka_records_tables.commands.main import main

sys.exit(main())
