"""`python -m kafka_records_cli`."""

import sys

from kafka_records_cli.main import main

sys.exit(main())
