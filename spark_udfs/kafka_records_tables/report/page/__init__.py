"""The report as a page: a single HTML file that makes no requests."""

from kafka_records_tables.report.page.page_file import write_page

__all__ = ["write_page"]
